import { useRef, useState } from 'react'
import { tell } from '../messages'

/** Hands a conversation over to the native program, by a file, and takes one over. */
export function Handover({ session, open }: { session: string; open: (session: string) => void }) {
  const file = useRef<HTMLInputElement>(null)
  const [said, setSaid] = useState('')
  const fail = (problem: unknown) => setSaid(problem instanceof Error ? problem.message : String(problem))
  const save = async () => {
    const handover = await tell('export', { session })
    const url = URL.createObjectURL(new Blob([JSON.stringify(handover, null, 2)], { type: 'application/json' }))
    const link = document.createElement('a')
    link.href = url
    link.download = `${session}.json`
    link.click()
    URL.revokeObjectURL(url)
    setSaid(`Exported. On the other side: outrigger import ${session}.json`)
  }
  const load = async (chosen: File) => {
    const taken = await tell('import', { text: await chosen.text() })
    setSaid(`Imported ${taken.messages} messages.`)
    open(taken.session)
  }
  return (
    <section aria-label="Hand over">
      <h2>Hand over</h2>
      <button type="button" onClick={() => void save().catch(fail)}>Export this conversation</button>
      <button type="button" onClick={() => file.current?.click()}>Import a conversation</button>
      <input ref={file} type="file" accept="application/json,.json" hidden onChange={({ target }) => target.files?.[0] && void load(target.files[0]).catch(fail)} />
      {said && <p role="status">{said}</p>}
    </section>
  )
}
