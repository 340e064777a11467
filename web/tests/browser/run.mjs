// The page in Chromium against a real server with a scripted model. Exit code 0: all held. Usage: run.mjs [--screens DIR] [NAME..]
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'
import { Impostor, PASSWORD, World } from './world.mjs'

const AXE = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium'
const args = process.argv.slice(2)
const at = args.indexOf('--screens')
const screens = at < 0 ? null : path.resolve(args.splice(at, 2)[1])
const only = new Set(args)

const world = new World()
const failures = []
let browser

/** A browser that has not seen the page; what it complains about is a failure. */
async function visit(hash = '', options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 820 }, colorScheme: 'light', reducedMotion: 'reduce', ...options })
  if (process.env.DIST) await fromDisk(context)
  const page = await context.newPage()
  page.problems = []
  page.on('console', (line) => line.type() === 'error' && !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/.test(line.text()) && page.problems.push(line.text()))
  page.on('pageerror', (error) => page.problems.push(String(error)))
  page.on('request', (request) => {
    if (/auth_token|token=/.test(request.url())) page.problems.push(`the token is in ${request.url()}`)
    if (carriesPassword(request)) page.problems.push(`the password went to ${request.url()}`)
    if (!request.url().startsWith(`http://127.0.0.1:${world.port}/`) && !/^(data|blob):/.test(request.url())) page.problems.push(`it asked ${request.url()}`)
  })
  await page.goto(world.page)
  if (hash) await page.evaluate((hash) => { location.hash = hash }, hash)
  return page
}

function carriesPassword(request) {
  const sent = [request.url(), request.postData() ?? '', ...Object.values(request.headers())].join('\n')
  return /^basic /im.test(sent) || sent.includes(PASSWORD) || sent.includes(btoa(`opencode:${PASSWORD}`))
}

async function leave(page) {
  const problems = page.problems
  await page.context().close()
  assert.deepEqual(problems, [])
}

/** The files of web/dist instead of those in the program: for work on the page (DIST=1). What the server says about them stays. */
async function fromDisk(context) {
  await context.route((url) => url.pathname.startsWith('/outrigger/web/') && !url.pathname.includes('/session'), async (route) => {
    const name = new URL(route.request().url()).pathname.split('/').pop() || 'index.html'
    const file = path.join(import.meta.dirname, '../../dist', name)
    const index = await route.fetch({ url: `http://127.0.0.1:${world.port}/outrigger/web/` })
    const types = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' }
    const headers = { 'content-security-policy': index.headers()['content-security-policy'], 'content-type': types[name.split('.').pop()] }
    await route.fulfill({ path: file, headers })
  })
}

/** No violation of the rules of WCAG 2.1 A and AA, in both themes. */
async function accessible(page, name) {
  for (const theme of ['light', 'dark']) {
    await page.evaluate((theme) => { document.documentElement.dataset.theme = theme }, theme)
    // By the debugger: the page's policy lets no script in.
    const session = await page.context().newCDPSession(page)
    await session.send('Runtime.evaluate', { expression: AXE })
    const answer = await session.send('Runtime.evaluate', { expression: "axe.run(document, { resultTypes: ['violations'] }).then((found) => JSON.stringify(found.violations.map((it) => ({ id: it.id, nodes: it.nodes.slice(0, 4).map((node) => node.html.slice(0, 160) + ' ' + node.failureSummary) }))))", awaitPromise: true, returnByValue: true })
    assert.deepEqual(JSON.parse(answer.result.value ?? '"no answer"'), [], `${name} ${theme}`)
    await session.detach()
  }
  await page.evaluate(() => { document.documentElement.dataset.theme = 'light' })
}

const shows = (page, text) => page.getByText(text).first().waitFor({ timeout: 30_000 })

async function test(name, run) {
  if (only.size && !only.has(name)) return
  const started = Date.now()
  try {
    await run()
    console.log(`ok ${name} ${Date.now() - started} ms`)
  } catch (error) {
    failures.push(name)
    console.log(`not ok ${name}\n${error.stack}`)
    for (const context of browser.contexts()) {
      for (const page of context.pages()) {
        await page.screenshot({ path: path.join(world.folder, '..', `page-failed-${name}.png`) }).catch(() => undefined)
        console.log((await page.evaluate(() => document.body.innerText).catch(() => '')).slice(0, 2000))
        console.log(page.problems)
      }
      await context.close()
    }
  }
}

async function picture(page, name, theme = 'light') {
  if (!screens) return
  await page.evaluate((theme) => { document.documentElement.dataset.theme = theme }, theme)
  await page.waitForTimeout(300)
  await page.screenshot({ path: path.join(screens, `page-${name}.png`) })
}

try {
  await world.begin()
  await world.serve()
  browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--enable-precise-memory-info', '--js-flags=--expose-gc'],
  })

  await test('empty', async () => {
    const page = await visit()
    await shows(page, 'No conversation yet')
    assert.equal(new URL(page.url()).hash.includes('token'), false)
    await accessible(page, 'empty')
    await leave(page)
  })

  await test('password', async () => {
    const context = await browser.newContext()
    const page = await context.newPage()
    const carried = []
    page.on('request', (request) => carriesPassword(request) && carried.push(request.url()))
    await page.goto(world.page.split('#')[0])
    await page.getByLabel('Password').fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await shows(page, 'That is not the password of this server.')
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('link', { name: 'New', exact: true }).waitFor()
    await page.reload()
    await page.getByRole('link', { name: 'New', exact: true }).waitFor()
    assert.deepEqual(carried, [])
    await context.close()
  })

  // A turn that is begun here runs live: text, reasoning, a todo list, a diff, a terminal.
  let worked
  await test('turn', async () => {
    const page = await visit('#/new')
    await page.getByLabel('What is to be done?').fill('rework the limiter so that tests can set its clock')
    await page.getByLabel('Model').selectOption({ label: 'Sonnet (scripted)' })
    await accessible(page, 'new')
    await page.getByRole('button', { name: 'Begin', exact: true }).click()
    await page.waitForURL(/#\/c\/ses_/)
    worked = /ses_\w+/.exec(page.url())[0]
    await shows(page, 'The suite passes.')
    const edit = page.getByRole('region', { name: /^Changes of src\/limiter.ts/ })
    await edit.getByText('setInterval').waitFor()
    assert.ok(await page.locator('.diff tr.new').count() > 3)
    assert.ok(await page.locator('.terminal .output span').count() > 3, 'colours of the terminal')
    // What a model writes is text: no element of it, no picture, no address that is code.
    assert.equal(await page.locator('.answer script, .answer img').count(), 0)
    assert.equal(await page.locator('a[href^=javascript]').count(), 0)
    assert.equal(await page.locator('.answer a[href="https://example.com/notes"]').getAttribute('rel'), 'noopener noreferrer nofollow')
    await page.locator('.hljs-keyword').first().waitFor()
    await accessible(page, 'answer')
    await picture(page, 'answer-dark', 'dark')
    await page.locator('.scroller').evaluate((box) => { box.scrollTop = 0 })
    await shows(page, 'Refill by elapsed time')
    await page.getByRole('region', { name: 'todowrite 1 of 3 done' }).waitFor()
    await page.getByText('Thought', { exact: true }).click()
    await shows(page, 'Elapsed time is enough.')
    await page.getByText('Thought', { exact: true }).click()
    await accessible(page, 'conversation')
    await picture(page, 'conversation')
    await leave(page)
  })

  await test('permission', async () => {
    const id = await world.session()
    const page = await visit()
    await page.getByRole('link', { name: 'New', exact: true }).waitFor()
    await world.prompt(id, 'run the release check')
    await page.getByRole('group', { name: 'Permission: Run a command' }).waitFor()
    // What waits is no work of an agent, here and in its conversation.
    await shows(page, 'No other agent is at work.')
    await accessible(page, 'home')
    await picture(page, 'overview')
    await page.getByRole('navigation', { name: 'Conversations' }).getByRole('group', { name: 'Waiting for you' }).getByRole('link', { name: /Run a command/ }).click()
    await page.getByRole('button', { name: /^Allow once/ }).waitFor()
    const call = page.getByRole('region', { name: 'bash date +%Y && echo released' })
    await call.getByText('waits for you').waitFor()
    assert.equal(await call.locator('.spinner, .terminal').count(), 0)
    await accessible(page, 'permission')
    await picture(page, 'permission-dark', 'dark')
    await page.getByRole('button', { name: /^Allow once/ }).click()
    await shows(page, 'The release check ran.')
    assert.equal(await call.getByText('waits for you').count(), 0)
    await shows(page, 'released')
    assert.equal(await page.getByRole('button', { name: /^Allow once/ }).count(), 0)
    await leave(page)
  })

  // Who has no model yet learns it before the first prompt, and how to get one.
  await test('no model', async () => {
    const page = await visit('#/new')
    await page.getByLabel('Folder').fill(world.bare)
    await shows(page, 'No model can be used in this folder.')
    await accessible(page, 'no model')
    await picture(page, 'no-model')
    await leave(page)
  })

  await test('question', async () => {
    const id = await world.session()
    const page = await visit(`#/c/${id}`)
    await world.prompt(id, 'ask me')
    await page.getByText('Redis').click()
    await accessible(page, 'question')
    await page.getByRole('button', { name: 'Answer', exact: true }).click()
    await shows(page, 'You chose.')
    await leave(page)
  })

  // The server is killed in the middle of a text and started again: the page goes on without a gap and shows what is stored.
  await test('restart', async () => {
    const id = await world.session()
    const page = await visit(`#/c/${id}`)
    await page.getByLabel('Prompt', { exact: true }).fill('talk slowly')
    await page.getByRole('button', { name: 'Send' }).click()
    await shows(page, /word5 word6/)
    await world.kill()
    await shows(page, 'No connection to the server')
    await accessible(page, 'offline')
    await world.serve()
    await page.getByText('No connection to the server').waitFor({ state: 'detached', timeout: 30_000 })
    await world.prompt(id, 'talk slowly')
    await shows(page, /word58 word59/)
    const stored = await world.api('GET', `/outrigger/v1/conversation/${id}/message`)
    const texts = stored.entries.filter((it) => it.message.messageType === 'text').map((it) => it.message.content)
    assert.equal(texts.filter((it) => it === 'talk slowly').length, 2)
    await page.locator('.working').waitFor({ state: 'detached', timeout: 30_000 })
    const shown = await page.locator('.row[data-key]').evaluateAll((rows) => rows.map((row) => row.dataset.key))
    const keys = stored.entries.filter((it) => it.message.messageType !== 'step').map((it) => it.key)
    assert.deepEqual(shown, keys)
    for (const text of texts) assert.ok((await page.locator('.column').innerText()).includes(text), text)
    await leave(page)
  })

  // Somebody else listens where the server was: it is sent a number, and what it finds in the tab opens nothing.
  await test('impostor', async () => {
    const id = await world.session('Kept from strangers')
    const page = await visit(`#/c/${id}`)
    await page.getByLabel('Prompt', { exact: true }).fill('a draft that is nobody else\'s')
    await world.kill()
    const impostor = await Impostor.listen(world.port)
    await shows(page, 'another program answers at')
    assert.ok(await page.getByRole('button', { name: 'Send' }).isDisabled())
    assert.equal(await page.getByLabel('Prompt', { exact: true }).inputValue(), 'a draft that is nobody else\'s')
    await accessible(page, 'impostor')
    await picture(page, 'impostor')
    await page.getByRole('link', { name: 'Changes' }).click()
    await page.getByRole('link', { name: 'Audit' }).click()
    const again = page.waitForResponse(/session\?nonce=/)
    await page.getByRole('button', { name: 'Ask again' }).click()
    await again
    await shows(page, 'another program answers at')
    assert.equal(impostor.heard.length, 2, JSON.stringify(impostor.heard))
    for (const { line, headers, body } of impostor.heard) {
      assert.match(line, /^GET \/outrigger\/web\/session\?nonce=[\w-]{32}$/)
      assert.deepEqual([headers.authorization, headers.cookie, body], [undefined, undefined, ''])
    }
    // A tab that is loaded anew is the stranger's, with all that is stored in it.
    await page.context().unrouteAll()
    const tab = await page.context().newPage()
    await tab.goto(world.page)
    await tab.close()
    await page.reload()
    const found = await page.evaluate(() => Object.values(sessionStorage))
    assert.equal(found.length, 1)
    impostor.close()
    await world.serve()
    for (const token of [...found, world.tokens.at(-2)]) {
      const answer = await fetch(`http://127.0.0.1:${world.port}/outrigger/v1/waiting`, { headers: { authorization: `Bearer ${token}` } })
      assert.equal(answer.status, 401)
    }
    await page.context().close()
  })

  await test('long output', async () => {
    const id = await world.session()
    const page = await visit(`#/c/${id}`)
    await world.prompt(id, 'print a lot')
    await shows(page, 'Printed.')
    // Only its beginning is known yet: that is shown, and not its middle as if it were the end.
    await page.getByText(/^The beginning of \d+ kB/).waitFor()
    const { entries } = await world.api('GET', `/outrigger/v1/conversation/${id}/message`)
    const { stdout } = entries.find((it) => it.message.metadata.tool_name === 'bash').message.metadata.details.data
    assert.ok(stdout.startsWith((await page.locator('.output').first().innerText()).slice(0, 60)))
    await page.getByRole('button', { name: /^Show \d+ more lines/ }).waitFor()
    assert.equal(await page.getByRole('button', { name: /earlier lines/ }).count(), 0)
    await page.getByRole('button', { name: 'Show all of it' }).click()
    await page.getByRole('button', { name: /earlier lines/ }).click()
    await page.locator('.output').getByText('19999').waitFor()
    await leave(page)
  })

  await test('views', async () => {
    const page = await visit(`#/c/${worked}/changes`)
    await page.locator('.diff tr.new').first().waitFor()
    await page.locator('.diff tr.new').first().hover()
    await page.locator('.diff tr.new .add-comment').first().click()
    await page.getByLabel('Comment', { exact: true }).fill('Why not a monotonic clock?')
    await page.getByRole('button', { name: 'Add comment' }).click()
    await accessible(page, 'changes')
    await picture(page, 'changes')
    // Side by side what was said stands there too, and both files are commented on.
    await page.getByRole('button', { name: 'Side by side' }).click()
    await page.locator('.diff table.split .comment', { hasText: 'Why not a monotonic clock?' }).waitFor()
    for (const [line, text] of [[/^Comment on removed line 6$/, 'Who needed this timer?'], [/^Comment on line 7$/, 'Pass the clock in the bucket.']]) {
      await page.locator('.diff table.split').getByLabel(line).first().click()
      await page.getByLabel('Comment', { exact: true }).fill(text)
      await page.getByRole('button', { name: 'Add comment' }).click()
      await page.locator('.diff table.split .comment', { hasText: text }).waitFor()
    }
    await accessible(page, 'changes side by side')
    await picture(page, 'changes-split-dark', 'dark')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('link', { name: 'Conversation', exact: true }).click()
    await shows(page, 'I read your comments.')
    await shows(page, /Why not a monotonic clock/)
    const sent = (await world.api('GET', `/outrigger/v1/conversation/${worked}/message`)).entries.map((it) => it.message.content)
    const comments = sent.find((text) => text.startsWith('Comments on your changes'))
    assert.match(comments, /src\/limiter\.ts:6 \(removed line\)\n {2}> setInterval.*\n {2}Who needed this timer\?/)
    assert.match(comments, /src\/limiter\.ts:7\n.*\n {2}Pass the clock in the bucket\./)
    await page.getByRole('link', { name: 'Trace' }).click()
    await page.getByLabel('Turn').selectOption({ index: 1 })
    const changed = page.locator('.span-row', { hasText: 'changed' }).first()
    await changed.click()
    await shows(page, 'What it changed')
    await shows(page, '/temperature')
    await page.locator('.changed-values .diff tr.new', { hasText: '0.2' }).waitFor()
    await accessible(page, 'trace')
    await picture(page, 'trace-dark', 'dark')
    await page.getByRole('link', { name: 'Cost' }).click()
    await page.locator('.chart canvas').first().waitFor()
    await accessible(page, 'cost')
    await picture(page, 'cost')
    await page.getByRole('link', { name: 'Plugins' }).click()
    await page.getByText('tool.execute.before').waitFor()
    await page.waitForTimeout(4500)
    await accessible(page, 'plugins')
    await picture(page, 'plugins')
    await page.getByRole('link', { name: 'Audit' }).click()
    await page.getByRole('button', { name: 'Verify' }).click()
    await shows(page, 'whole')
    await accessible(page, 'audit')
    await picture(page, 'audit-dark', 'dark')
    await page.locator('#main').focus()
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
    await accessible(page, 'help')
    await leave(page)
  })

  // What is stored anywhere is found, and gone to, also where it was said long ago.
  await test('search', async () => {
    const page = await visit()
    await page.getByLabel('Search conversations').fill('elapsed limiter')
    const hits = page.getByRole('group', { name: 'In messages' }).getByRole('link')
    await hits.first().waitFor()
    await page.getByText('Looking through messages').waitFor({ state: 'detached' })
    await hits.first().click()
    await page.locator('.row.found').waitFor()
    assert.ok(await page.locator('.row.found').evaluate((row) => { const box = row.getBoundingClientRect(); return box.top < innerHeight && box.bottom > 0 }))
    await accessible(page, 'search')
    await picture(page, 'search')
    // What a tool printed as JSON is read as text.
    await page.getByLabel('Search conversations').fill('refill in_progress')
    await hits.filter({ hasText: 'content: Refill by elapsed time, status: in_progress' }).first().waitFor()
    assert.equal(await hits.filter({ hasText: '{' }).count(), 0)
    await page.getByLabel('Search conversations').fill('nothing says thisword')
    await shows(page, 'Nothing has that, neither titles nor messages.')
    await leave(page)
  })

  // What is at the end stays in view while it grows, what is read above stays where it is, and a prompt goes to the end.
  await test('the end', async () => {
    const id = await world.session('Followed to its end')
    const page = await visit(`#/c/${id}`)
    const box = page.locator('.scroller')
    const rest = () => box.evaluate((it) => it.scrollHeight - it.scrollTop - it.clientHeight)
    const settled = async () => {
      await page.locator('.working').waitFor({ state: 'detached', timeout: 30_000 })
      await page.waitForTimeout(300)
    }
    const prompt = page.getByLabel('Prompt', { exact: true })
    for (const text of ['rework the limiter once more', 'print a lot', 'rework the limiter again']) {
      await prompt.fill(text)
      await prompt.press('Enter')
      await page.locator('.working').waitFor({ timeout: 30_000 })
      await settled()
      assert.ok((await rest()) < 40, `${text}: ${await rest()} pixels from the end`)
    }
    await box.hover()
    await page.mouse.wheel(0, -900)
    await page.waitForTimeout(300)
    const top = await box.evaluate((it) => it.scrollTop)
    await world.prompt(id, 'print a lot')
    await page.locator('.working').waitFor({ timeout: 30_000 })
    await settled()
    assert.ok(Math.abs((await box.evaluate((it) => it.scrollTop)) - top) < 5)
    await prompt.fill('print a lot')
    await prompt.press('Enter')
    await page.locator('.working').waitFor({ timeout: 30_000 })
    await settled()
    assert.ok((await rest()) < 40, `${await rest()} pixels from the end`)
    await leave(page)
  })

  // Conversations with one title are told apart by how they began.
  await test('one title', async () => {
    const page = await visit()
    for (const text of ['look at the first half', 'look at the second half']) await world.prompt(await world.session('Two halves'), text)
    await world.prompt(await world.session('One of a kind'), 'look at the whole')
    const both = page.getByRole('navigation', { name: 'Conversations' }).getByRole('link', { name: /Two halves/ })
    await both.filter({ hasText: 'look at the first half' }).waitFor()
    await both.filter({ hasText: 'look at the second half' }).waitFor()
    assert.equal(await page.locator('.item-opening').filter({ hasText: 'look at the whole' }).count(), 0)
    await accessible(page, 'one title')
    await picture(page, 'one-title')
    await leave(page)
  })

  // A file by its name, an image from the clipboard: both go with the prompt.
  await test('attachments', async () => {
    const id = await world.session('With files')
    const page = await visit(`#/c/${id}`)
    const prompt = page.getByLabel('Prompt', { exact: true })
    await prompt.pressSequentially('ask nobody about @limit')
    await page.getByRole('listbox', { name: 'Files' }).getByRole('option', { name: 'src/limiter.ts' }).waitFor()
    await accessible(page, 'files')
    await prompt.press('Enter')
    assert.equal(await prompt.inputValue(), 'ask nobody about @src/limiter.ts ')
    await prompt.evaluate((area) => {
      const bytes = Uint8Array.from(atob('iVBORw0KGgoAAAANSUhEUgAAABgAAAAYCAYAAADgdz34AAAAIklEQVR42mNk+M9QzzCKBgYYRzWMahjVMKphVMOohlENAIxoBVXmdQ4ZAAAAAElFTkSuQmCC'), (it) => it.charCodeAt(0))
      const data = new DataTransfer()
      data.items.add(new File([bytes], 'shot.png', { type: 'image/png' }))
      data.items.add(new File(['x'], 'notes.txt', { type: 'text/plain' }))
      area.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
    })
    await page.getByRole('button', { name: 'Remove shot.png' }).waitFor()
    await shows(page, 'notes.txt is not a PNG, JPEG, GIF or WebP image')
    await picture(page, 'attachments')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.locator('img.picture').waitFor()
    const stored = await world.api('GET', `/session/${id}/message`)
    const files = stored.flatMap((it) => it.parts).filter((it) => it.type === 'file')
    assert.deepEqual(files.map((it) => it.filename).toSorted(), ['limiter.ts', 'shot.png'])
    await page.locator('.working').waitFor({ state: 'detached', timeout: 30_000 })
    await leave(page)
  })

  await test('take back what others changed', async () => {
    const id = await world.session('Changed by others')
    const page = await visit(`#/c/${id}`)
    await world.prompt(id, 'write notes')
    await shows(page, 'Noted.')
    await page.locator('.working').waitFor({ state: 'detached', timeout: 30_000 })
    const notes = path.join(world.project, 'notes.md')
    fs.writeFileSync(notes, 'of the user\n')
    const takeBack = page.locator('.row.user').last().getByRole('button', { name: /^Take back this/ })
    await page.locator('.row.user').last().hover()
    await takeBack.click()
    await shows(page, /nothing was reverted: .*notes\.md/)
    await accessible(page, 'refused undo')
    await page.getByRole('button', { name: 'Leave the files' }).click()
    assert.equal(await page.getByText(/nothing was reverted/).count(), 0)
    assert.equal(fs.readFileSync(notes, 'utf8'), 'of the user\n')
    await takeBack.click()
    await page.getByRole('button', { name: 'Take back anyway' }).click()
    await shows(page, 'taken back, with the changes of files')
    assert.equal(fs.existsSync(notes), false)
    // The browser reports each refused request.
    page.problems = page.problems.filter((it) => !/status of 409/.test(it))
    await leave(page)
  })

  await test('take back', async () => {
    const id = await world.session('Taken back')
    const page = await visit(`#/c/${id}`)
    await world.prompt(id, 'print a lot')
    await shows(page, 'Printed.')
    await world.prompt(id, 'talk slowly')
    await shows(page, /word58 word59/)
    await page.locator('.working').waitFor({ state: 'detached', timeout: 30_000 })
    const last = page.locator('.row.user').last()
    await last.hover()
    await last.getByRole('button', { name: /^Take back/ }).click()
    await shows(page, 'taken back, with the changes of files')
    assert.equal(await page.getByText(/word58 word59/).count(), 0)
    const prompt = page.getByLabel('Prompt', { exact: true })
    assert.equal(await prompt.inputValue(), 'talk slowly')
    await accessible(page, 'taken back')
    await picture(page, 'taken-back')
    await page.getByRole('button', { name: 'Bring back' }).click()
    await shows(page, /word58 word59/)
    // The copy ends before the prompt, which is there to be written anew.
    await page.locator('.row.user').last().getByRole('button', { name: /^Fork/ }).click()
    await page.waitForURL((url) => url.hash.startsWith('#/c/ses_') && !url.hash.includes(id))
    await shows(page, 'Printed.')
    assert.equal(await page.getByText(/word58 word59/).count(), 0)
    assert.equal(await prompt.inputValue(), 'talk slowly')
    await leave(page)
  })

  await test('phone', async () => {
    const page = await visit('', { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 })
    await page.getByRole('link', { name: /Rate limiter/ }).first().waitFor()
    await accessible(page, 'phone home')
    await picture(page, 'phone-overview')
    await page.evaluate((id) => { location.hash = `#/c/${id}` }, worked)
    await shows(page, 'The suite passes.')
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390)
    await page.locator('.scroller').evaluate((box) => { box.scrollTop = 420 })
    await accessible(page, 'phone conversation')
    await picture(page, 'phone')
    await page.getByRole('link', { name: 'All conversations' }).click()
    await page.getByRole('link', { name: /Rate limiter/ }).first().waitFor()
    await leave(page)
  })

  // Ten thousand messages: all of them are scrolled through, and no more than a few are in the page or in memory.
  await test('ten thousand', async () => {
    const id = await world.session('A long one')
    await world.kill()
    world.fill(id, 10_000)
    await world.serve()
    const page = await visit(`#/c/${id}`)
    await page.locator('.row[data-key]').first().waitFor()
    const figures = () => page.evaluate(() => {
      globalThis.gc?.()
      return { nodes: document.querySelectorAll('*').length, rows: document.querySelectorAll('.row').length, heap: performance.memory.usedJSHeapSize, height: document.querySelector('.scroller').scrollHeight }
    })
    const first = await figures()
    const frames = await page.evaluate(async () => {
      const box = document.querySelector('.scroller')
      const late = []
      let last = performance.now()
      let still = 0
      let height = box.scrollHeight
      for (const end = performance.now() + 240_000; performance.now() < end && still < 60;) {
        box.scrollTop = Math.max(0, box.scrollTop - 1500)
        await new Promise((done) => requestAnimationFrame(done))
        const now = performance.now()
        late.push(now - last)
        last = now
        still = box.scrollTop === 0 && box.scrollHeight === height ? still + 1 : 0
        height = box.scrollHeight
      }
      late.sort((a, b) => a - b)
      return { count: late.length, p50: late[Math.floor(late.length / 2)], p95: late[Math.floor(late.length * 0.95)], p99: late[Math.floor(late.length * 0.99)] }
    })
    await shows(page, 'The beginning of this conversation')
    const top = await figures()
    // Back to the end: what was dropped comes again.
    await page.evaluate(async () => {
      const box = document.querySelector('.scroller')
      for (let n = 0; n < 120; n++) {
        box.scrollTop += box.scrollHeight / 120
        await new Promise((done) => requestAnimationFrame(done))
      }
      box.scrollTop = box.scrollHeight
    })
    await page.waitForTimeout(1500)
    assert.equal(await page.locator('.placeholder').count(), 0)
    const end = await figures()
    console.log(JSON.stringify({ first, top, end, frames }))
    for (const now of [first, top, end]) {
      assert.ok(now.nodes < 4000, `${now.nodes} elements`)
      assert.ok(now.heap < 64 * 1024 * 1024, `${now.heap} bytes`)
    }
    await leave(page)
  })
} catch (error) {
  failures.push('set-up')
  console.log(error.stack)
  if (world.server) console.log(world.server.log.slice(-2000))
} finally {
  await browser?.close()
  world.end()
}
console.log(failures.length ? `failed: ${failures.join(', ')}` : 'all held')
process.exit(failures.length ? 1 : 0)
