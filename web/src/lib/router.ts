import { useSyncExternalStore } from 'react'

export type Tab = 'talk' | 'changes' | 'trace' | 'cost'

export type Route =
  | { view: 'home' }
  | { view: 'new' }
  | { view: 'conversation'; id: string; tab: Tab; /** Entry that is gone to. */ at?: string }
  | { view: 'plugins' }
  | { view: 'audit'; session: string | null }

const TABS: readonly string[] = ['talk', 'changes', 'trace', 'cost']

export function parse(hash: string): Route {
  const [view, id, tab, at] = hash.replace(/^#\/?/, '').split('/').map(part)
  switch (view) {
    case 'new':
      return { view: 'new' }
    case 'plugins':
      return { view: 'plugins' }
    case 'audit':
      return { view: 'audit', session: id || null }
    case 'c':
      if (id) return { view: 'conversation', id, tab: (TABS.includes(tab ?? '') ? tab : 'talk') as Tab, ...(at ? { at } : {}) }
      return { view: 'home' }
    default:
      return { view: 'home' }
  }
}

function part(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}

export function href(route: Route): string {
  switch (route.view) {
    case 'home':
      return '#/'
    case 'conversation':
      if (route.at) return `#/c/${encodeURIComponent(route.id)}/${route.tab}/${encodeURIComponent(route.at)}`
      return `#/c/${encodeURIComponent(route.id)}${route.tab === 'talk' ? '' : `/${route.tab}`}`
    case 'audit':
      return route.session ? `#/audit/${encodeURIComponent(route.session)}` : '#/audit'
    default:
      return `#/${route.view}`
  }
}

export function go(route: Route): void {
  window.location.hash = href(route)
}

function subscribe(listener: () => void): () => void {
  window.addEventListener('hashchange', listener)
  return () => window.removeEventListener('hashchange', listener)
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => window.location.hash)
  return parse(hash)
}
