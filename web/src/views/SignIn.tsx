import { useState } from 'react'
import { server } from '../lib/server'
import { message } from '../state/live'

/** Asks for the password of the server, where the address did not bring it. */
export function SignIn({ done }: { done: () => void }) {
  const [name, setName] = useState('opencode')
  const [password, setPassword] = useState('')
  const [error, setError] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const submit = async () => {
    setBusy(true)
    setError(null)
    try {
      await server.signIn(name, password)
      done()
    } catch (problem) {
      setError(message(problem))
      setBusy(false)
    }
  }
  return (
    <main className="sign-in">
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <h1>Outrigger</h1>
        <p className="quiet">
          This server asks for a password. <code>outrigger web</code> prints an address that signs in, as long as that server lives; or type what{' '}
          <code>OPENCODE_SERVER_PASSWORD</code> says.
        </p>
        <label>
          <span>User</span>
          <input value={name} autoComplete="username" onChange={(event) => setName(event.target.value)} />
        </label>
        <label>
          <span>Password</span>
          <input type="password" value={password} autoComplete="current-password" autoFocus onChange={(event) => setPassword(event.target.value)} />
        </label>
        {error && (
          <p className="bad" role="alert">
            {error}
          </p>
        )}
        <button type="submit" className="primary" disabled={!password || busy}>
          {busy ? 'Signing in …' : 'Sign in'}
        </button>
      </form>
    </main>
  )
}
