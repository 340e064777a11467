import type { ReactNode } from 'react'
import { Icon, type IconName } from './Icon'

export function Loading({ label }: { label: string }) {
  return (
    <div className="state" role="status" aria-busy="true">
      <span className="spinner large" />
      <p>{label} …</p>
    </div>
  )
}

export function Empty({ icon, title, text, children }: { icon: IconName; title: string; text: string; children?: ReactNode }) {
  return (
    <div className="state">
      <span className="state-icon">
        <Icon name={icon} />
      </span>
      <h2>{title}</h2>
      <p>{text}</p>
      {children}
    </div>
  )
}

export function Failed({ message, retry }: { message: string; retry: () => void }) {
  return (
    <div className="state" role="alert">
      <span className="state-icon bad">
        <Icon name="warn" />
      </span>
      <h2>That did not work</h2>
      <p>{message}</p>
      <button type="button" onClick={retry}>
        Try again
      </button>
    </div>
  )
}
