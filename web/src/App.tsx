import { useEffect, useState } from 'react'
import { onRefused } from './lib/http'
import { server } from './lib/server'
import { go, useRoute, type Route, type Tab } from './lib/router'
import { live } from './state/live'
import { useSignal } from './state/signal'
import { Help } from './ui/Help'
import { Icon } from './ui/Icon'
import { Sidebar } from './ui/Sidebar'
import { WaitingTitle } from './ui/Waiting'
import { Audit } from './views/Audit'
import { ConversationView } from './views/ConversationView'
import { Home } from './views/Home'
import { New } from './views/New'
import { Plugins } from './views/Plugins'
import { SignIn } from './views/SignIn'

export function App() {
  const [isRefused, setRefused] = useState(false)
  const [attempt, setAttempt] = useState(0)
  useEffect(() => onRefused(() => setRefused(true)), [])
  useEffect(() => {
    live.start()
    return () => live.stop()
  }, [attempt])
  if (isRefused) {
    return (
      <SignIn
        done={() => {
          setRefused(false)
          setAttempt((it) => it + 1)
        }}
      />
    )
  }
  return <Shell />
}

function Shell() {
  const route = useRoute()
  const [help, setHelp] = useState(false)
  useKeys(route, () => setHelp(true))
  useSignal(live.list)
  return (
    <div className={`shell at-${route.view}`}>
      <a className="skip" href="#main" onClick={(event) => {
        event.preventDefault()
        document.getElementById('main')?.focus()
      }}>
        To the content
      </a>
      <Sidebar route={route} help={() => setHelp(true)} />
      <main id="main" tabIndex={-1}>
        <Banner />
        <View route={route} />
      </main>
      <WaitingTitle count={live.waiting().length} />
      {help && <Help close={() => setHelp(false)} />}
    </div>
  )
}

function View({ route }: { route: Route }) {
  switch (route.view) {
    case 'conversation':
      return <ConversationView id={route.id} tab={route.tab} at={route.at} />
    case 'new':
      return <New />
    case 'plugins':
      return <Plugins />
    case 'audit':
      return <Audit session={route.session} key={route.session} />
    default:
      return <Home />
  }
}

/** Says that there is no connection; what is shown stays. */
function Banner() {
  useSignal(live.status)
  const [isLong, setLong] = useState(false)
  const lost = live.link !== 'live'
  useEffect(() => {
    setLong(false)
    if (!lost) return
    // A brief interruption is not worth reporting.
    const timer = setTimeout(() => setLong(true), 1200)
    return () => clearTimeout(timer)
  }, [lost])
  if (live.link === 'stranger') return <StrangerBanner />
  if (!lost || !isLong) return null
  return (
    <div className="banner" role="status">
      <Icon name="warn" /> No connection to the server. What you see may be old; it goes on by itself.
      <button type="button" onClick={() => live.follow?.retry()}>
        Try now
      </button>
    </div>
  )
}

/** Says that the server has ended and somebody else is where it was; what is shown stays, so that a draft can be kept. */
function StrangerBanner() {
  return (
    <div className="banner stranger" role="alert">
      <Icon name="warn" />
      <p>
        {server.provesItself ? (
          <>
            <strong>The server has ended, and another program answers at {window.location.host}.</strong> This page sends nothing to it. Run{' '}
          </>
        ) : (
          <>
            <strong>The server was started again, or another program answers at {window.location.host}.</strong> Load this page anew and sign in, or run{' '}
          </>
        )}
        <code>outrigger web</code> and open the address that it prints.
      </p>
      <button type="button" onClick={() => live.follow?.retry()}>
        Ask again
      </button>
    </div>
  )
}

const TABS: Tab[] = ['talk', 'changes', 'trace', 'cost']

/** Keys that work outside of inputs. */
function useKeys(route: Route, help: () => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      if (target instanceof HTMLElement && target.closest('input,textarea,select,dialog,[contenteditable]')) return
      const move = (step: number) => {
        const all = live.conversations()
        const at = all.findIndex((info) => route.view === 'conversation' && info.id === route.id)
        const next = all[at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, at + step))]
        if (next) go({ view: 'conversation', id: next.id, tab: 'talk' })
      }
      const waits = () => {
        const asked = live.waiting().map((one) => live.info(one.request.sessionID)?.task ?? one.request.sessionID)
        const at = route.view === 'conversation' ? asked.indexOf(route.id) : -1
        const next = asked[(at + 1) % asked.length]
        if (next) go({ view: 'conversation', id: next, tab: 'talk' })
      }
      const keys: Record<string, () => void> = {
        n: () => go({ view: 'new' }),
        j: () => move(1),
        k: () => move(-1),
        w: waits,
        i: () => document.getElementById('prompt')?.focus(),
        '/': () => document.getElementById('search')?.focus(),
        '?': help,
      }
      TABS.forEach((tab, n) => {
        keys[String(n + 1)] = () => route.view === 'conversation' && go({ ...route, tab })
      })
      const run = keys[event.key]
      if (!run) return
      event.preventDefault()
      run()
    }
    window.addEventListener('keydown', pressed)
    return () => window.removeEventListener('keydown', pressed)
  }, [route, help])
}
