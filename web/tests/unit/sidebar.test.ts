import { expect, test } from 'vitest'
import { sameTitle } from '../../src/ui/Sidebar'

test('conversations that have one title are known, all of them', () => {
  const all = ['Fix it', 'Rename', 'Fix it', 'Fix it', 'fix it'].map((title, n) => ({ id: `ses_${n}`, title }))
  expect([...sameTitle(all)].sort()).toEqual(['ses_0', 'ses_2', 'ses_3'])
  expect(sameTitle([])).toEqual(new Set())
})
