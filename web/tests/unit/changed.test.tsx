import { renderToStaticMarkup } from 'react-dom/server'
import { expect, it } from 'vitest'
import type { ChangedValue } from '../../src/api'
import { Changed } from '../../src/ui/Changed'

const shown = (values: ChangedValue[], more = 0) => {
  const html = renderToStaticMarkup(<Changed places={['/temperature', '']} values={values} more={more} />)
  return html.replace(/<[^>]+>/g, ' ').replaceAll('&quot;', '"').replace(/\s+/g, ' ').trim()
}

it('shows a change as the lines before and after', () => {
  const text = shown([{ at: '/temperature', before: { kind: 'whole', value: 1 }, after: { kind: 'whole', value: 0.2 } }])
  expect(text).toMatch(/^\/temperature 1 - 1 1 \+ 0.2$/)
  expect(shown([{ at: '/system/1', after: { kind: 'whole', value: 'Be brief.' } }])).toMatch(/^\/system\/1 added 1 \+ Be brief\.$/)
  expect(shown([{ at: '/a', before: { kind: 'whole', value: { b: [1] } } }])).toMatch(/^\/a removed .*- "b": \[/)
})

it('says what it has not all of', () => {
  const sha256 = '0123456789abcdef'
  const part = shown([{ at: '/t', before: { kind: 'excerpt', text: 'xay', from: 9800, bytes: 20001 }, after: { kind: 'excerpt', text: 'xby', from: 9800, bytes: 20001 } }])
  expect(part).toContain('A part of 20 kB, after the first 9.6 kB.')
  expect(part).toMatch(/- xay 1 \+ xby/)
  expect(shown([{ at: '/t', before: { kind: 'digest', bytes: 5_000_000, sha256 }, after: { kind: 'whole', value: 'short' } }])).toMatch(/before 4\.8 MB, SHA-256 0123456789ab after short/)
  expect(shown([{ at: '/t', after: { kind: 'whole', value: 1 } }], 3)).toContain('3 further places changed.')
})

it('names the places of a record without values', () => {
  expect(shown([])).toBe('/temperature /')
})
