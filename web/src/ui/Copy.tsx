import { useState } from 'react'
import { Icon } from './Icon'

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [done, setDone] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setDone(true)
    setTimeout(() => setDone(false), 1500)
  }
  return (
    <button type="button" className="icon-button small" aria-label={done ? 'Copied' : label} onClick={() => void copy().catch(() => undefined)}>
      <Icon name={done ? 'check' : 'copy'} />
    </button>
  )
}
