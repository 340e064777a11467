import type { ReactNode } from 'react'

/** A command line with its prompt, which is not copied or read aloud. */
export function CommandLine({ children, className }: { children: ReactNode; className?: string }) {
  return (
    <pre className={className} tabIndex={0}>
      <span className="prompt" aria-hidden="true">
        ${' '}
      </span>
      {children}
    </pre>
  )
}
