import { useEffect, useMemo, useRef, useState } from 'react'
import type { Waiting, WaitingPermission, WaitingQuestion } from '../api'
import { within } from '../lib/format'
import { RequestError, post } from '../lib/http'
import { changedFile, pieces, place, plain } from '../lib/permission'
import { live, message } from '../state/live'
import { CommandLine } from './CommandLine'
import { Diff } from './Diff'
import { fromText } from './diff'
import { Icon } from './Icon'

/** Keys answer only after this, so that what was meant for something else answers nothing. */
const TOO_EARLY = 600

/** What a fact is called beside the buttons. */
const LABELS: Record<string, string> = { always: '“Always” allows' }

/** Something that waits for a person. */
export function WaitingCard({ waiting, directory = '' }: { waiting: Waiting; directory?: string }) {
  return waiting.type === 'permission' ? (
    <PermissionCard waiting={waiting} directory={directory} key={waiting.request.id} />
  ) : (
    <QuestionCard waiting={waiting} key={waiting.request.id} />
  )
}

/** Untrusted text. Of a long one the beginning and the end are shown, so that what it does cannot be out of sight. */
export function LongText({ text }: { text: string }) {
  const [whole, setWhole] = useState(false)
  const shown = useMemo(() => pieces(text, whole), [text, whole])
  return shown.map((piece, at) =>
    'text' in piece ? (
      <span key={at}>{piece.text}</span>
    ) : (
      <span key={at} className="asked-note">
        {piece.note}
        {piece.isCut && (
          <button type="button" className="link" onClick={() => setWhole(true)}>
            Show all
          </button>
        )}
      </span>
    ),
  )
}

function useAnswer(id: string) {
  const [state, setState] = useState<{ busy: boolean; error: string | null }>({ busy: false, error: null })
  const answer = async (path: string, body: unknown) => {
    setState({ busy: true, error: null })
    try {
      await post(path, body)
      live.answered(id)
    } catch (error) {
      // Another client was faster.
      if (error instanceof RequestError && error.status === 404) live.answered(id)
      else setState({ busy: false, error: message(error) })
    }
  }
  return { ...state, answer }
}

export function PermissionCard({ waiting, directory }: { waiting: WaitingPermission; directory: string }) {
  const { request, shown: asked } = waiting
  const { busy, error, answer } = useAnswer(request.id)
  const [reason, setReason] = useState<string | null>(null)
  const shown = useRef(Date.now())
  const reply = (word: 'once' | 'always' | 'reject', why?: string) =>
    void answer(`/outrigger/v1/permission/${request.id}/reply`, { reply: word, ...(why ? { message: why } : {}) })
  const { command, rows, change } = place(asked)
  const title = plain(asked.title)
  return (
    <div
      role="group"
      className="waiting permission"
      aria-label={`Permission: ${title}`}
      onKeyDown={(event) => {
        if (event.target instanceof HTMLTextAreaElement || event.ctrlKey || event.metaKey || event.altKey) return
        if (busy || Date.now() - shown.current < TOO_EARLY) return
        if (event.key === 'y') reply('once')
        else if (event.key === 'a') reply('always')
        else if (event.key === 'n') reply('reject')
        else return
        event.preventDefault()
      }}
    >
      <header>
        <Icon name="shield" />
        <p className="waiting-title">{title}</p>
        <span className="tag">{plain(request.permission)}</span>
      </header>
      {command && <CommandLine className="asked mono"><LongText text={command} /></CommandLine>}
      {rows.length > 0 && (
        <dl className="asked-facts">
          {rows.map(({ name, text }) => (
            <div key={name}>
              <dt>{LABELS[name] ?? name}</dt>
              <dd className="mono">
                <LongText text={name === 'file' ? within(text, directory) : text} />
              </dd>
            </div>
          ))}
        </dl>
      )}
      {change && <Diff change={fromText(changedFile(waiting), change)} />}
      {error && <p className="bad" role="alert">{error}</p>}
      {reason === null ? (
        <div className="buttons">
          <button type="button" className="primary" disabled={busy} onClick={() => reply('once')}>
            Allow once <kbd>y</kbd>
          </button>
          {request.always.length > 0 && (
            <button type="button" disabled={busy} onClick={() => reply('always')}>
              Always allow <kbd>a</kbd>
            </button>
          )}
          <button type="button" className="danger" disabled={busy} onClick={() => reply('reject')}>
            Reject <kbd>n</kbd>
          </button>
          <button type="button" className="link" disabled={busy} onClick={() => setReason('')}>
            Reject and say what to do
          </button>
        </div>
      ) : (
        <form
          className="comment-form"
          onSubmit={(event) => {
            event.preventDefault()
            reply('reject', reason.trim())
          }}
        >
          <textarea autoFocus rows={2} value={reason} aria-label="What to do instead" placeholder="What should it do instead? The model reads this." onChange={(event) => setReason(event.target.value)} />
          <div className="buttons">
            <button type="submit" className="danger" disabled={busy}>
              Reject
            </button>
            <button type="button" onClick={() => setReason(null)}>
              Back
            </button>
          </div>
        </form>
      )}
    </div>
  )
}

export function QuestionCard({ waiting }: { waiting: WaitingQuestion }) {
  const { request } = waiting
  const { busy, error, answer } = useAnswer(request.id)
  const [chosen, setChosen] = useState<string[][]>(() => request.questions.map(() => []))
  const [own, setOwn] = useState<string[]>(() => request.questions.map(() => ''))
  const choose = (at: number, label: string, multiple: boolean) =>
    setChosen((all) => all.map((labels, n) => (n !== at ? labels : !multiple ? [label] : labels.includes(label) ? labels.filter((it) => it !== label) : [...labels, label])))
  const answers = request.questions.map((question, at) => {
    const typed = own[at]?.trim()
    return typed ? [...(question.multiple ? (chosen[at] ?? []) : []), typed] : (chosen[at] ?? [])
  })
  return (
    <form
      className="waiting question"
      aria-label="Question"
      onSubmit={(event) => {
        event.preventDefault()
        void answer(`/outrigger/v1/question/${request.id}/reply`, { answers })
      }}
    >
      {request.questions.map((question, at) => (
        <fieldset key={at}>
          <legend>
            <span className="tag">{plain(question.header)}</span> <LongText text={question.question} />
          </legend>
          {question.options.map((option) => (
            <label key={option.label} className="option">
              <input
                type={question.multiple ? 'checkbox' : 'radio'}
                name={`${request.id}-${at}`}
                checked={chosen[at]?.includes(option.label) ?? false}
                onChange={() => choose(at, option.label, question.multiple ?? false)}
              />
              <span>
                <strong>{plain(option.label)}</strong>
                <small>{plain(option.description)}</small>
              </span>
            </label>
          ))}
          {question.custom !== false && (
            <input
              type="text"
              className="own"
              value={own[at] ?? ''}
              placeholder="Or an answer of your own"
              aria-label={`Own answer to: ${plain(question.question)}`}
              onChange={(event) => setOwn((all) => all.map((it, n) => (n === at ? event.target.value : it)))}
            />
          )}
        </fieldset>
      ))}
      {error && <p className="bad" role="alert">{error}</p>}
      <div className="buttons">
        <button type="submit" className="primary" disabled={busy || answers.some((it) => !it.length)}>
          Answer
        </button>
        <button type="button" disabled={busy} onClick={() => void answer(`/outrigger/v1/question/${request.id}/reject`, {})}>
          Dismiss
        </button>
      </div>
    </form>
  )
}

/** Says aloud that something waits. */
export function WaitingTitle({ count }: { count: number }) {
  useEffect(() => {
    document.title = count ? `(${count}) Outrigger` : 'Outrigger'
  }, [count])
  return (
    <p className="visually-hidden" role="status">
      {count ? `${count} waiting for you` : ''}
    </p>
  )
}
