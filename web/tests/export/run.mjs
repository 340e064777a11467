// The HTML file of `outrigger export` in Chromium, from file://: no request, no error, nothing of a conversation runs, 10,000 messages
// scroll. Exit code 0: all held. Usage: OUTRIGGER_BIN=… run.mjs [--screens DIR]
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { chromium } from 'playwright-core'

const BINARY = path.resolve(process.env.OUTRIGGER_BIN ?? path.join(import.meta.dirname, '../../../target/debug/outrigger'))
const screens = process.argv[2] === '--screens' ? path.resolve(process.argv[3]) : null
const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'export-')))
const project = path.join(folder, 'project')
const outrigger = (...args) => execFileSync(BINARY, ['--dir', project, ...args], { env: { PATH: process.env.PATH, HOME: path.join(folder, 'home'), TERM: 'dumb' }, encoding: 'utf8', maxBuffer: 1 << 28, timeout: 60_000 })
fs.mkdirSync(project)
fs.mkdirSync(path.join(folder, 'home'))

const HOSTILE = [
  '</script><script>window.ran = 1</script>', '<!--<script>', '<img src=x onerror="window.ran = 1">', '<iframe srcdoc="<script>parent.ran = 1</script>"></iframe>',
  '[a link](javascript:window.ran=1) <a href="javascript:window.ran=1">raw</a>', '![picture](https://example.com/beacon.png) ![local](file:///etc/passwd)',
  '<style>body { display: none }</style> <meta http-equiv="refresh" content="0; url=https://example.com">', '\u001b]0;title\u0007\u001b[2J\u202egnp.exe', '`` `</code><script>window.ran=1</script>',
]

/** A session in OpenCode's form. */
function session(id, title, pairs) {
  const info = { id, slug: 's', projectID: 'global', directory: project, path: '', title, version: '1', time: { created: 1_795_740_000_000, updated: 1_795_740_000_000 } }
  const messages = pairs.flatMap(([asked, parts], n) => {
    const [prompt, answer, at] = [`msg_${2 * n}`, `msg_${2 * n + 1}`, 1_795_740_000_000 + n * 1000]
    return [
      { info: { role: 'user', id: prompt, sessionID: id, time: { created: at } }, parts: [{ type: 'text', text: asked }] },
      { info: { role: 'assistant', id: answer, parentID: prompt, sessionID: id, time: { created: at, completed: at } }, parts },
    ]
  })
  return JSON.stringify({ info, messages })
}
const text = (value) => ({ type: 'text', text: value })
const tool = (name, input, output, metadata = {}) => ({ type: 'tool', callID: 'c', tool: name, state: { status: 'completed', input, output, title: '', metadata, time: { start: 1, end: 5 } } })

/** The file of a session that is imported first. */
function exported(name, content, ...options) {
  fs.writeFileSync(path.join(folder, `${name}.json`), content)
  const id = outrigger('import', path.join(folder, `${name}.json`)).split(' ')[0]
  const file = path.join(folder, `${name}.html`)
  outrigger('export', id, '--format', 'html', '--output', file, ...options)
  return file
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'] })

/** A file in a browser that is offline; what it complains about, asks for or runs is a failure. */
async function visit(file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 820 }, reducedMotion: 'reduce', offline: true, ...options })
  const page = await context.newPage()
  page.problems = []
  page.on('console', (line) => ['error', 'warning'].includes(line.type()) && page.problems.push(line.text()))
  page.on('pageerror', (error) => page.problems.push(String(error)))
  page.on('dialog', (dialog) => { page.problems.push(`dialog ${dialog.message()}`); void dialog.dismiss() })
  page.on('request', (request) => request.url() !== `file://${file}` && !request.url().startsWith(`file://${file}#`) && !request.url().startsWith('data:') && page.problems.push(`it asked ${request.url()}`))
  await page.goto(`file://${file}`)
  await page.getByRole('log').waitFor()
  return page
}

async function leave(page) {
  assert.equal(await page.evaluate(() => window.ran), undefined)
  assert.deepEqual(page.problems, [])
  await page.context().close()
}

async function picture(page, name) {
  if (screens) await page.screenshot({ path: path.join(screens, `export-${name}.png`) })
}

try {
  const work = [
    ['Rework the limiter', [
      { type: 'reasoning', text: 'The timer keeps the process alive. Elapsed time is enough.', time: { start: 1, end: 2 } },
      text('Let me look at what the tests say.'),
      tool('bash', { command: 'node check.mjs', description: 'run the tests' }, '\u001b[32m ✓\u001b[0m refills by elapsed time\n2 passed', { exit: 0 }),
      tool('edit', { filePath: `${project}/limiter.ts`, oldString: 'setInterval(() => this.refill(), 100)', newString: 'this.at = now()' }, 'ok', { filediff: { before: 'const a = 1\nsetInterval(() => this.refill(), 100)\n', after: 'const a = 1\nthis.at = now()\n' }, exists: true }),
      text('I moved the limiter to **elapsed time**:\n\n```ts\nexport const take = (now: number) => now - at\n```\n\n| Case | After |\n|---|---:|\n| burst | 3 ms |\n'),
    ]],
  ]
  for (const colorScheme of ['light', 'dark']) {
    const file = exported(`work-${colorScheme}`, session(`ses_work_${colorScheme}`, 'Rate limiter with a clock', work))
    const page = await visit(file, { colorScheme })
    await page.getByText('elapsed time').first().waitFor()
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme)
    await picture(page, colorScheme)
    await leave(page)
  }
  console.log('ok light and dark')

  const parts = HOSTILE.flatMap((one) => [text(one), { type: 'reasoning', text: one, time: { start: 1, end: 1 } }, tool(one, { command: one, filePath: one, url: one }, one, { stdout: one, details: { type: 'diff', data: { oldContent: one, newContent: `${one}!`, path: one } } })])
  const files = [{ type: 'file', mime: 'image/png', filename: HOSTILE[0], url: 'https://example.com/beacon.png' }, { type: 'file', mime: 'image/svg+xml', url: 'data:image/svg+xml,<svg onload="window.ran=1"/>' }]
  const hostile = exported('hostile', session('ses_hostile', HOSTILE.join(' '), HOSTILE.map((one) => [one, [...parts, ...files]])))
  const page = await visit(hostile)
  for (const button of await page.locator('.reasoning button, .card-head[aria-expanded=false]').all()) await button.click({ timeout: 2000 }).catch(() => undefined)
  for (let at = 0; at < 20; at++) await page.getByRole('log').evaluate((box) => box.scrollBy(0, 700))
  assert.equal(await page.locator('a[href^="javascript:"], iframe, object, embed, img:not([src^="data:image/png"])').count(), 0)
  await picture(page, 'hostile')
  await leave(page)
  console.log('ok a hostile conversation does nothing')

  const many = exported('many', session('ses_many', 'Ten thousand messages', Array.from({ length: 5000 }, (_, n) => [`Prompt ${n}`, [text(`Answer ${n}`)]])))
  const long = await visit(many)
  const drawn = () => long.locator('.row').count()
  const most = []
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    // The list measures rows as they come into view, so its end moves.
    await long.getByRole('log').evaluate((box, share) => { box.scrollTop = box.scrollHeight * share }, share)
    await long.waitForTimeout(200)
    most.push(await drawn())
  }
  for (let n = 0; n < 10; n++) await long.getByRole('log').evaluate((box) => { box.scrollTop = box.scrollHeight })
  await long.getByText('Answer 4999').waitFor()
  assert.ok(Math.max(...most) < 200, `rows that are drawn: ${most}`)
  await leave(long)
  console.log(`ok 10,000 messages scroll, at most ${Math.max(...most)} rows are drawn`)
} finally {
  await browser.close()
  fs.rmSync(folder, { recursive: true, force: true })
}
