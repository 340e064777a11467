import { flushSync } from 'react-dom'
import { createRoot } from 'react-dom/client'
import { expect, it } from 'vitest'
import { live } from '../../src/state/live'
import { Home } from '../../src/views/Home'

it('says that there is no conversation only if none was searched for', () => {
  live.loaded = true
  const shown = () => {
    const place = document.createElement('div')
    const root = createRoot(place)
    flushSync(() => root.render(<Home />))
    const text = place.textContent
    root.unmount()
    return text
  }
  expect(shown()).toContain('No conversation yet')
  live.search = 'nothing has this'
  const searched = shown()
  live.search = ''
  expect(searched).not.toContain('No conversation yet')
  expect(searched).toContain('Overview')
})
