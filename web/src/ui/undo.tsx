import { useState } from 'react'
import { post, RequestError } from '../lib/http'
import { message } from '../state/live'

/** Why it was refused. */
export interface Refusal {
  text: string
  /** It protects files; who has seen which may go on. */
  canForce: boolean
}

/** Takes messages back or brings them back; both change files. */
export function useUndo(path: string, directory: string, done: () => void) {
  const [refusal, setRefusal] = useState<Refusal | null>(null)
  const send = (body: object) =>
    void post(path, body, { directory }).then(
      () => {
        setRefusal(null)
        done()
      },
      (problem: unknown) => setRefusal({ text: message(problem), canForce: problem instanceof RequestError && problem.kind === 'RevertConflictError' }),
    )
  return { refusal, send, dismiss: () => setRefusal(null) }
}

/** The refusal, with a way to go on if there is one. */
export function RefusedUndo({ refusal, label, onForce, onDismiss }: { refusal: Refusal; label: string; onForce: () => void; onDismiss: () => void }) {
  return (
    <span role="alert">
      <span className="bad">{refusal.text}</span>
      {refusal.canForce && (
        <span className="refused-undo-choice">
          <button type="button" onClick={onDismiss}>
            Leave the files
          </button>
          <button type="button" className="danger" onClick={onForce}>
            {label}
          </button>
        </span>
      )}
    </span>
  )
}
