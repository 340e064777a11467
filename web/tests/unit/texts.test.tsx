import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, it } from 'vitest'
import { withComments } from '../../src/state/comments'
import { compare, fromText, sideBySide } from '../../src/ui/diff'
import { isSafe, Markdown } from '../../src/ui/Markdown'
import { Ansi, settle } from '../../src/ui/Terminal'
import { href, parse, type Route } from '../../src/lib/router'

const html = (text: string) => renderToStaticMarkup(<Markdown text={text} />)

describe('markdown', () => {
  it.each<[string, (n: number) => string]>([
    ['quotes', (n) => '>'.repeat(n) + 'x'],
    ['quotes of a long text', (n) => '>'.repeat(n) + ' x'.repeat(n)],
    ['quotes, then lines', (n) => '>'.repeat(n) + 'x' + '\nx'.repeat(n)],
    ['items', (n) => '- '.repeat(n) + 'x'],
    ['items, then blank lines', (n) => '- '.repeat(n) + 'x' + '\n'.repeat(n)],
    ['items in quotes', (n) => '> 1. '.repeat(n) + 'x'],
    ['opened emphasis', (n) => '*a _b '.repeat(n)],
    ['nested emphasis', (n) => '*a **b '.repeat(n) + 'c** d*'.repeat(n)],
    ['opened links', (n) => '[a]('.repeat(n)],
    ['addresses', (n) => 'http://a.example/(a@b.example '.repeat(n)],
    ['columns without cells', (n) => '|a'.repeat(n) + '|\n' + '|-'.repeat(n) + '|\n|\n'],
  ])('makes no more of hostile texts than they are long: %s', (_, text) => {
    const [one, two] = [html(text(2000)).length, html(text(4000)).length]
    expect(two).toBeLessThanOrEqual(text(4000).length * 100)
    expect(two).toBeLessThanOrEqual(one * 2.25)
  })

  it('takes more items than a call takes arguments', () => {
    expect(html('- a\n'.repeat(150_000)).match(/<li>/g)).toHaveLength(150_000)
  }, 120_000)

  it('never makes elements of HTML, and asks no other host', () => {
    for (const text of [
      '<script>alert(1)</script>', '<img src=x onerror=alert(1)>', '![a](https://example.com/a.png)', '![a](data:image/svg+xml;base64,AAAA)',
      '[a](javascript:alert(1))', '[a](data:text/html;base64,AAAA)', '[a](vbscript:x)', '<a href="javascript:alert(1)">a</a>', '<https://example.com/"onclick=alert(1)>',
      '[a](https://example.com "onmouseover=alert(1)")', '```html\n<script>\n```', '<details open ontoggle=alert(1)>', '<svg><script>alert(1)</script></svg>',
    ]) {
      const made = html(text).replaceAll('<svg class="icon"', '')
      expect(made, text).not.toMatch(/<(script|img|svg|iframe|details|style|object)\b/i)
      expect(made, text).not.toMatch(/\son\w+="/i)
      expect(made, text).not.toMatch(/href="(?!https:)/i)
    }
  })

  it('shows task lists with boxes', () => {
    const made = html('- [x] done\n- [ ] `open`\n- [ ]\n- [y] neither\n\n[x] no item')
    expect(made).toContain('☑ done')
    expect(made).toContain('☐ <code>open</code>')
    for (const text of ['[y] neither', '[x] no item']) expect(made).toContain(text)
  })

  it('opens addresses without telling where from', () => {
    expect(html('[a](https://example.com/)')).toContain('target="_blank" rel="noopener noreferrer nofollow"')
    expect([isSafe('https://a.b'), isSafe('mailto:a@b.c'), isSafe('javascript:1'), isSafe('/x'), isSafe('JAVASCRIPT:1'), isSafe('file:///etc')]).toEqual([true, true, false, false, false, false])
  })

  it('shows lists, tables and code', () => {
    const made = html('# T\n\n3. a\n4. b\n\n|x|\n|-:|\n|1|\n\n`c` **d**')
    expect(made).toContain('<h3 class="h1">T</h3>')
    expect(made).toContain('<ol start="3"><li>a</li><li>b</li></ol>'.replaceAll('<li>', '<li>'))
    expect(made).toContain('<td class="align-right">1</td>')
    expect(made).toContain('<code>c</code> <strong>d</strong>')
  })
})

describe('the output of a terminal', () => {
  it('has what stands there in the end', () => {
    expect(settle('10 %\r50 %\r100 %\nok')).toBe('100 %\nok')
    expect(settle('a\u001b]0;title\u0007b\u001b]8;;https://x\u001b\\c')).toBe('abc')
    expect(settle('\u001b[2J\u001b[1;1Hx\u001b[K\u001b[?25l\u001b(B')).toBe('x')
    expect(settle('\u001b[31mred\u001b[0m')).toBe('\u001b[31mred\u001b[0m')
    expect(settle('a\u0000\u0007b')).toBe('ab')
  })

  it('is coloured, and nothing of it is HTML', () => {
    const made = renderToStaticMarkup(<Ansi text={'\u001b[1;31m<b>\u001b[0m \u001b[38;5;208mx\u001b[0m \u001b[38;2;1;2;3my'} />)
    expect(made).toContain('&lt;b&gt;')
    expect(made).toContain('var(--ansi-red)')
    expect(made).toContain('rgb(255,135,0)')
    expect(made).toContain('rgb(1, 2, 3)')
  })
})

describe('a difference', () => {
  it('has the lines of both sides with their numbers', () => {
    const change = compare('a', 'one\ntwo\nthree\n', 'one\n2\nthree\nfour\n')
    expect([change.added, change.removed]).toEqual([2, 1])
    const lines = change.hunks.flatMap((hunk) => hunk.lines)
    expect(lines.map((line) => [line.kind, line.old, line.new, line.text])).toEqual([
      ['same', 1, 1, 'one'],
      ['old', 2, null, 'two'],
      ['new', null, 2, '2'],
      ['same', 3, 3, 'three'],
      ['new', null, 4, 'four'],
    ])
    expect(sideBySide(lines).map(({ left, right }) => [left?.text ?? null, right?.text ?? null])).toEqual([['one', 'one'], ['two', '2'], ['three', 'three'], [null, 'four']])
  })

  it('says which words differ', () => {
    const [old, next] = compare('a', 'let total = one + two\n', 'let total = one + three\n').hunks[0]?.lines ?? []
    expect(old?.marks?.filter((mark) => mark.changed).map((mark) => mark.text)).toEqual(['two'])
    expect(next?.marks?.filter((mark) => mark.changed).map((mark) => mark.text)).toEqual(['three'])
  })

  it('does not fail on what is no patch', () => {
    expect(fromText('a', '@@ nonsense').hunks.flatMap((hunk) => hunk.lines)).toEqual([])
    expect(compare('a', '', '').hunks).toEqual([])
  })
})

describe('comments', () => {
  it('go before the prompt, with the line that they are about', () => {
    const comment = { id: 1, conversation: 'c', path: 'src/a.ts', line: 3, code: '  let x', text: 'why?' }
    expect(withComments('go on', [])).toBe('go on')
    expect(withComments('go on', [comment, { ...comment, line: -2 }])).toBe('Comments on your changes:\n\n- src/a.ts:3\n  > let x\n  why?\n- src/a.ts:2 (removed line)\n  > let x\n  why?\n\ngo on')
  })
})

describe('addresses', () => {
  it('lead where they came from', () => {
    const routes: Route[] = [{ view: 'home' }, { view: 'new' }, { view: 'plugins' }, { view: 'audit', session: null }, { view: 'audit', session: 'ses_1' }, { view: 'conversation', id: 'ses_/1', tab: 'talk' }, { view: 'conversation', id: 'a', tab: 'trace' }]
    for (const route of routes) expect(parse(href(route))).toEqual(route)
    expect(parse('#/c/%E0%A4%A')).toEqual({ view: 'home' })
    expect(parse('#token=x')).toEqual({ view: 'home' })
  })
})
