import { expect, it } from 'vitest'
import { Fresh } from '../../src/state/fresh'

it('keeps what the stream said while a list was read', () => {
  const all = new Fresh<string>()
  all.set('gone', 'listed before')
  const reading = all.reading()
  all.set('asked', 'while it was read')
  all.set('answered', 'asked and answered while it was read')
  all.delete('answered')
  all.set('changed', 'new')
  reading.take([['answered', 'stale'], ['changed', 'old'], ['listed', 'by the list']], true)
  reading.end()
  expect([...all]).toEqual([['asked', 'while it was read'], ['changed', 'new'], ['listed', 'by the list']])
})

it('takes a later list whole, and keeps what a page of a list does not name', () => {
  const all = new Fresh<string>()
  all.set('one', 'first')
  const page = all.reading()
  page.take([['two', 'second']], false)
  page.end()
  expect([...all.keys()]).toEqual(['one', 'two'])
  const whole = all.reading()
  whole.take([['two', 'third']], true)
  whole.end()
  expect([...all]).toEqual([['two', 'third']])
})

it('has each of two readings keep what came since its own beginning', () => {
  const all = new Fresh<string>()
  const first = all.reading()
  all.set('a', 'new')
  const second = all.reading()
  second.take([['a', 'as the server has it now']], true)
  second.end()
  first.take([], true)
  first.end()
  expect([...all]).toEqual([['a', 'as the server has it now']])
})
