export type Theme = 'system' | 'light' | 'dark'

const KEY = 'outrigger.theme'
const media = window.matchMedia('(prefers-color-scheme: dark)')

export function theme(): Theme {
  try {
    const kept = window.localStorage.getItem(KEY)
    return kept === 'light' || kept === 'dark' ? kept : 'system'
  } catch {
    return 'system'
  }
}

export function setTheme(next: Theme): void {
  try {
    window.localStorage.setItem(KEY, next)
  } catch {
    // It then applies only to this page.
  }
  apply(next)
}

function apply(wanted: Theme): void {
  const shown = wanted === 'system' ? (media.matches ? 'dark' : 'light') : wanted
  document.documentElement.dataset['theme'] = shown
}

export function beginTheme(): void {
  apply(theme())
  media.addEventListener('change', () => apply(theme()))
}
