import { useEffect, useState } from 'react'
import type { Rule } from '../kernel/operations'
import { tell } from '../messages'
import { Bridge } from './Bridge'
import { Relay } from './Relay'
import type { Settings as Values } from '../session/settings'

/** The model, its key, the limit of a turn, the rules. */
export function Settings() {
  const [values, setValues] = useState<Values | null>(null)
  const [key, setKey] = useState('')
  const [hasKey, setHasKey] = useState(false)
  const [said, setSaid] = useState('')
  useEffect(() => {
    void tell('settings', {}).then((got) => {
      setValues(got.settings)
      setHasKey(got.hasKey)
    })
  }, [])
  if (!values) return null
  const save = async () => {
    // A page of the extension may ask for this, in a gesture; the worker may not.
    const origin = `${new URL(values.url).origin}/*`
    const granted = await chrome.permissions.request({ origins: [origin] })
    await tell('save', { settings: values, ...(key ? { key } : {}) })
    setHasKey(hasKey || key !== '')
    setKey('')
    setSaid(granted ? 'Saved.' : 'Saved. The provider has to allow requests of extensions, since the permission for its address was not given.')
  }
  return (
    <main className="settings">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          save().catch((problem: unknown) => setSaid(problem instanceof Error ? problem.message : String(problem)))
        }}
      >
        <Field label="Address" value={values.url} change={(url) => setValues({ ...values, url })} />
        <Field label="Model" value={values.model} change={(model) => setValues({ ...values, model })} />
        <Field label={hasKey ? 'Key (one is there until the browser closes)' : 'Key (kept until the browser closes)'} type="password" value={key} change={setKey} />
        <Field label="Requests in a turn, at most" type="number" value={String(values.maxSteps)} change={(text) => setValues({ ...values, maxSteps: Number(text) })} />
        <Field label="Instructions" value={values.instructions} change={(instructions) => setValues({ ...values, instructions })} />
        <button type="submit">Save</button>
        {said && <p role="status">{said}</p>}
      </form>
      <Bridge url={values.bridge} change={(bridge) => setValues({ ...values, bridge })} />
      <Relay url={values.relay} change={(relay) => setValues({ ...values, relay })} />
      <Secrets list={values.secrets} change={(secrets) => setValues({ ...values, secrets })} />
      <Kinds granted={values.fields} change={(fields) => setValues({ ...values, fields })} />
      <Rules rules={values.rules} change={(rules) => setValues({ ...values, rules })} />
    </main>
  )
}

function Field({ label, value, change, type = 'text' }: { label: string; value: string; change: (text: string) => void; type?: string }) {
  return (
    <label>
      {label}
      <input type={type} value={value} onChange={(event) => change(event.target.value)} />
    </label>
  )
}

/** What may be typed by name. A value goes to the worker, and does not come back. */
function Secrets({ list, change }: { list: string[]; change: (list: string[]) => void }) {
  const [entry, setEntry] = useState('')
  const [value, setValue] = useState('')
  const add = async () => {
    const [name, host] = entry.split('@')
    if (!name || !host || !value) return
    const secrets = [...list.filter((it) => !it.startsWith(`${name}@`)), entry]
    await tell('save', { settings: { secrets }, secrets: { [name]: value } })
    change(secrets)
    setEntry('')
    setValue('')
  }
  return (
    <section aria-label="Secrets">
      <h2>Secrets</h2>
      <p>What the agent may type by name, at the hosts that the entry names. The value is kept until the browser closes, and the model does not read it.</p>
      <Field label="Name and hosts, as SHOP_PASSWORD@*.shop.example" value={entry} change={setEntry} />
      <Field label="Value" type="password" value={value} change={setValue} />
      <button type="button" onClick={() => void add()}>Add</button>
      <ul>
        {list.map((it) => (
          <li key={it}>
            {it} <button type="button" className="link" onClick={() => change(list.filter((one) => one !== it))}>Remove</button>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Kinds of fields that hold what is the user's, as the kernel names them. */
const KINDS = [
  ['password', 'Passwords'],
  ['card', 'Payment cards'],
  ['code', 'Codes that are valid once'],
] as const

/** Which fields of the user's may be read and typed in. Takes effect at once, as with secrets. */
function Kinds({ granted, change }: { granted: string[]; change: (fields: string[]) => void }) {
  const set = async (kind: string, on: boolean) => {
    const fields = [...granted.filter((it) => it !== kind), ...(on ? [kind] : [])]
    await tell('save', { settings: { fields } })
    change(fields)
  }
  return (
    <section aria-label="Fields">
      <h2>Fields</h2>
      <p>The agent neither reads these fields nor types in them, unless you allow it. Secrets are typed by their names without that.</p>
      {KINDS.map(([kind, label]) => (
        <label key={kind}>
          <input type="checkbox" checked={granted.includes(kind)} onChange={(event) => void set(kind, event.target.checked)} /> {label}
        </label>
      ))}
    </section>
  )
}

function Rules({ rules, change }: { rules: Rule[]; change: (rules: Rule[]) => void }) {
  return (
    <section aria-label="Rules">
      <h2>Rules</h2>
      <p>The last rule that fits counts. What none is about asks; reading files and writing to the workspace is allowed.</p>
      <ul>
        {rules.map((rule, place) => (
          <li key={`${rule.permission} ${rule.pattern}`}>
            {rule.action} {rule.permission} {rule.pattern}{' '}
            <button type="button" className="link" onClick={() => change(rules.filter((_, at) => at !== place))}>Remove</button>
          </li>
        ))}
      </ul>
    </section>
  )
}
