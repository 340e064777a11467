import { useEffect, useRef } from 'react'

const KEYS: [string, string][] = [
  ['n', 'new conversation'],
  ['w', 'the next that waits for you'],
  ['j, k', 'next, previous conversation'],
  ['1 – 4', 'conversation, changes, trace, cost'],
  ['i', 'write a prompt'],
  ['/', 'search'],
  ['y, a, n', 'in a permission: once, always, reject'],
  ['Enter', 'send; Shift+Enter: a new line'],
  ['Esc', 'in the prompt: stop the agent'],
  ['?', 'this list'],
]

export function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  return (
    <dialog ref={dialog} className="help" aria-labelledby="keys" onClose={close} onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
      <h2 id="keys">Keys</h2>
      <dl>
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </dialog>
  )
}
