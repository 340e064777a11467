// The steps of web.py in the browser: REFERENCE OURS PASSWORD PROJECT OUT. What each step shows is written to OUT as JSON.
import fs from 'node:fs'
import chromium from '@sparticuz/chromium'
import puppeteer from 'puppeteer-core'

const [, , reference, ours, password, project, out] = process.argv
const WAIT = 20000
const CLICKABLE = 'button,[role=tab],[role=button],[role=option],[role=menuitem],[role=radio],[role=checkbox],a'
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
const asked = new Map()
const screens = []

// Without web security a page names no origin, as no browser of a user does.
const args = chromium.args.filter((it) => !['--disable-web-security', '--allow-running-insecure-content'].includes(it))
const browser = await puppeteer.launch({
  args: [...args, '--no-sandbox'], executablePath: await chromium.executablePath(), headless: 'shell',
  defaultViewport: { width: 1200, height: 900 },
})
const page = await browser.newPage()
page.on('response', (answer) => {
  if (!answer.url().startsWith(ours)) return
  const name = `${answer.request().method()} ${new URL(answer.url()).pathname.replace(/(ses|per|que|msg)_\w+/g, '$1')} ${answer.status()}`
  asked.set(name, (asked.get(name) ?? 0) + 1)
})

// What a user reads: rolling figures are drawn as columns of digits, which are omitted.
async function text() {
  const all = await page.evaluate(() => document.body.innerText)
  return all.split('\n').map((line) => line.trim()).filter((line) => !/^[0-9,]?$/.test(line)).join('\n')
}

async function until(what, holds) {
  for (const end = Date.now() + WAIT; Date.now() < end; await sleep(50)) if (await holds()) return
  throw new Error(`${what} is not there:\n${await text()}`)
}

const shows = (words) => until(words, async () => (await text()).includes(words))

async function click(words, which = 0) {
  const one = () => page.evaluate((query, words, which) => {
    const named = (element) => element.getAttribute('aria-label') || element.innerText.trim()
    const found = [...document.querySelectorAll(query)].filter((element) => named(element).startsWith(words)).at(which)
    found?.click()
    return !!found
  }, CLICKABLE, words, which)
  await until(`a button "${words}"`, one)
  await sleep(300)
}

// Menus open only for a mouse, not for a scripted click.
async function press(words) {
  const place = () => page.evaluate((words) => {
    const shown = [...document.querySelectorAll('body *')].filter((element) => element.innerText?.trim() === words)
    const box = shown.map((element) => element.getBoundingClientRect()).filter((box) => box.width > 4).at(-1)
    return box && [box.x + box.width / 2, box.y + box.height / 2]
  }, words)
  await until(`something to press "${words}"`, place)
  await page.mouse.click(...await place())
  await sleep(300)
}

// Without it the pages offer no choice of agents.
async function showAgents() {
  await click('General')
  await shows('Show agent')
  await page.evaluate(() => {
    const rows = [...document.querySelectorAll('[data-component=settings-v2-row]')]
    rows.find((row) => row.innerText.startsWith('Show agent')).querySelector('input').click()
  })
}

async function screen(name) {
  await sleep(500)
  screens.push({ name, text: (await text()).replaceAll(project, '/project').replaceAll(new URL(ours).host, 'OURS').replaceAll(new URL(reference).host, 'PAGES').replace(/\d+:\d\d [AP]M/g, 'TIME').replace(/· \d+s\b/g, '· 0s') })
}

async function say(words, then) {
  await page.click('[contenteditable=true]')
  await page.keyboard.type(words, { delay: 5 })
  await page.keyboard.press('Enter')
  await shows(then)
}

try {
  await page.goto(reference, { waitUntil: 'domcontentloaded' })
  await click('Settings')
  await click('Servers')
  await click('Add server')
  await page.type('input[placeholder="http://localhost:4096"]', ours)
  await page.type('input[placeholder="password"]', password)
  await click('Add server', -1)
  await shows(`${new URL(ours).host}\nopencode`)
  await screen('server')
  await showAgents()
  await page.goto(reference, { waitUntil: 'domcontentloaded' })
  await shows(new URL(ours).host)
  await click('Add project', -1)
  await steps()
} catch (error) {
  screens.push({ name: 'failed', text: String(error) })
  process.exitCode = 1
}

async function steps() {
  await page.type('input[placeholder="Search folders"]', project)
  await shows('Open project')
  await sleep(1500)
  await page.keyboard.press('Enter')
  await until('the project', async () => /^project$/m.test(await text()))
  await screen('project')
  await click('New session', -1)
  await until('a place to write', () => page.$('[contenteditable=true]'))
  await say('say hi', 'All done.')
  await screen('prompt')
  await say('read the file', 'The file says hi there.')
  await until('the end of the tool', async () => !(await text()).includes('Exploring'))
  await screen('tool')
  await say('edit the file', '1 Changed file')
  await screen('edit')
  await say('ask first', 'Allow once')
  await screen('permission')
  await click('Allow once')
  await until('the end', async () => !(await text()).includes('Allow once'))
  await say('ask me', 'Which one?')
  await screen('question')
  await click('Blue')
  await click('Submit')
  await shows('1 answered')
  await screen('answered')
  await say('delegate it', 'sub job')
  await screen('subagent')
  await say('talk slowly', 'one two')
  await click('Stop')
  await shows('nterrupted')
  await screen('abort')
  await page.reload({ waitUntil: 'domcontentloaded' })
  await until('the model', async () => /^M1$/m.test(await text()))
  await shows('talk slowly')
  await screen('reloaded')
  await page.goto(reference, { waitUntil: 'domcontentloaded' })
  await shows('Today\nP\nA title')
  await screen('sessions')
  await click('New session', -1)
  await until('a place to write', () => page.$('[contenteditable=true]'))
  await press('M1')
  await shows('Manage models')
  await screen('models')
  await press('M2')
  await press('Build')
  await shows('Plan')
  await screen('agents')
  await press('Plan')
  await say('say hi', 'Plan · M2')
  await shows('All done.')
  await screen('other-session')
}

fs.writeFileSync(out, JSON.stringify({ screens, asked: [...asked].sort() }, null, 1))
await browser.close()
process.exit()
