// What pages of an agent's tabs may ask for: the browser judges each request by rules of the extension (docs/browser.md).
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { until } from './chromium.mjs'
import { Hand, reference } from './hand.mjs'

/** Whether the ways are there that no rule of the browser judges. */
const unjudged = `const unjudged = () => [typeof RTCPeerConnection, typeof webkitRTCPeerConnection, typeof SharedWorker, typeof navigator.serviceWorker].every((it) => it === 'undefined') ? 'without' : 'with'`

/** A page of the person's own, whose workers are of no tab: those of a site that an agent uses are judged. */
const workers = (to) => `<title></title><script>
const code = \`onconnect = (event) => fetch('${to}/shared', { mode: 'no-cors' }).finally(() => event.ports[0].postMessage('over'))\`
new SharedWorker(URL.createObjectURL(new Blob([code], { type: 'text/javascript' }))).port.onmessage = () => document.title += 'shared '
navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready).finally(() => document.title += 'service ')
</script>`

/** All the ways in which a page asks, each with a path of its own. Its title lists those that have ended. */
const ways = (to) => `<title></title><img src="${to}/img" onerror="over('image')"><img src="/away" onerror="over('redirect')">
<script type="speculationrules">{ "prefetch": [{ "urls": ["${to}/prefetched", "/away?prefetched"], "eagerness": "immediate" }], "prerender": [{ "urls": ["/rendered"], "eagerness": "immediate" }] }</script>
<a href="${to}/link">Link</a>
<script>
const to = '${to}/', over = (what) => document.title += what + ' '
onmessage = (event) => over(event.data)
fetch(to + 'fetch', { mode: 'no-cors' }).catch(() => over('fetch'))
navigator.sendBeacon(to + 'beacon', 'x')
const socket = new WebSocket(to.replace('http', 'ws') + 'socket'); socket.onerror = () => over('socket')
const events = new EventSource(to + 'events'); events.onerror = () => { events.close(); over('events') }
const code = \`const go = (port, path) => fetch('\${to}' + path, { mode: 'no-cors' }).finally(() => port.postMessage('over'))
  new WebSocket('\${to.replace('http', 'ws')}worker-socket').onerror = () => go(self, 'worker')\`
const blob = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }))
new Worker(blob).onmessage = (event) => over('worker-' + event.data)
${unjudged}
const empty = document.documentElement.appendChild(document.createElement('iframe'))
over('own-' + unjudged())
over('empty-' + empty.contentWindow.eval('(' + unjudged + ')()'))
for (const rel of ['prefetch', 'preload', 'stylesheet', 'modulepreload', 'icon']) document.head.append(Object.assign(document.createElement('link'), { rel, href: to + rel, as: 'image' }))
const inner = \`<script>
  const over = (what) => parent.postMessage(what, '*'); let open = 2; const one = () => --open || over('framed')
  fetch('\${to}frame-fetch', { mode: 'no-cors' }).then(one, one)
  new WebSocket('\${to.replace('http', 'ws')}frame-socket').onerror = one<\\/script>\`
document.documentElement.append(Object.assign(document.createElement('iframe'), { sandbox: 'allow-scripts', srcdoc: inner }))
document.documentElement.append(Object.assign(document.createElement('iframe'), { src: to + 'frame' }))
document.documentElement.append(Object.assign(document.createElement('iframe'), { src: location.origin.replace('127.0.0.1', 'localhost') + '/other' }))
</script>`

const OVER = ['image', 'redirect', 'fetch', 'socket', 'events', 'worker-over', 'framed', 'own-without', 'empty-without', 'other-without']

export async function network({ browser, id, page, world }) {
  const arrived = []
  const closed = createServer((request, response) => {
    arrived.push(request.url)
    response.setHeader('access-control-allow-origin', '*').end('<title>reached</title>reached')
  })
  closed.on('upgrade', (request, socket) => {
    arrived.push(request.url)
    socket.destroy()
  })
  await new Promise((resolve) => closed.listen(0, '127.0.0.1', resolve))
  const to = `http://127.0.0.1:${closed.address().port}`
  try {
    await pages({ browser, id, page, world, to, arrived })
  } finally {
    closed.closeAllConnections()
    closed.close()
  }
  console.log('network: no request of a page, a frame or a worker goes to what no rule names')
}

async function pages({ browser, id, page, world, to, arrived }) {
  const other = world.url.replace('127.0.0.1', 'localhost')
  const allowed = [world.url, other].map((site) => ({ permission: 'browser', pattern: `${site}/*`, action: 'allow' }))
  await page.tell('save', { settings: { rules: [...allowed, { permission: 'browser', pattern: 'about:*', action: 'allow' }], maxSteps: 200 } })
  world.pages = {
    '/': ways(to),
    '/other': `<script>${unjudged}; parent.postMessage('other-' + unjudged(), '*')</script>`,
    '/workers': workers(to),
    '/sw.js': `self.addEventListener('install', (event) => event.waitUntil(fetch('${to}/service', { mode: 'no-cors' }).catch(() => 0)))`,
    '/pops': `<button onclick="window.open('${to}/popup')">Pop</button><button onclick="window.open('/away?popup')">Away</button>`,
    '/rendered': `<img src="${to}/rendered">`,
  }
  world.redirects = { '/away': `${to}/redirected` }
  const hand = new Hand(world, page, 'ses_network')
  await hand.begin()
  await hand.call('browser_open', { url: `${world.url}/` })
  let shown = ''
  for (let tries = 0; tries < 100 && !OVER.every((way) => shown.includes(way)); tries++) shown = await hand.call('browser_snapshot', { full: true })
  for (const way of OVER) assert.ok(shown.includes(way), `${way}: ${shown.slice(0, 500)}`)
  assert.deepEqual(arrived, [])

  const registering = await browser.call('Target.createTarget', { url: `${world.url}/workers` })
  const own = await browser.attach((it) => it.targetId === registering.targetId)
  await until(() => own.run(`['shared', 'service'].every((it) => document.title.includes(it))`), 'the workers of the person\'s page')
  await browser.call('Target.closeTarget', registering)
  assert.deepEqual(arrived, [])

  // A worker of the extension that wakes leaves the rules as they are.
  await browser.killWorker(id)
  await hand.again()
  await hand.call('browser_action', { action: 'click', ref: reference(shown, '"Link"') })
  assert.match(await hand.call('browser_action', { action: 'navigate', url: `${world.url}/away` }), /no rule allows/)
  await hand.call('browser_action', { action: 'navigate', url: `${world.url}/pops` })
  assert.deepEqual(arrived, [])

  // Pop-ups are tabs that nobody knows before they ask.
  shown = await hand.call('browser_snapshot', { full: true })
  for (const name of ['"Pop"', '"Away"']) assert.match(await hand.call('browser_action', { action: 'click', ref: reference(shown, name) }), /It opened the tab/)
  await new Promise((resolve) => setTimeout(resolve, 500))
  assert.deepEqual(arrived, [])

  // A person's own tab is not judged by these rules.
  const theirs = await browser.call('Target.createTarget', { url: `${to}/own` })
  await until(() => arrived.includes('/own'), 'the page of the person')
  await browser.call('Target.closeTarget', theirs)

  // A person's word opens an origin, and that one alone.
  const opening = hand.call('browser_open', { url: `${to}/named` })
  let questions = []
  await until(async () => (questions = await page.tell('questions')).length === 1, 'a question about the page')
  await page.tell('answer', { id: questions[0].id, reply: 'once' })
  assert.match(await opening, /reached/)
  assert.ok(arrived.includes('/named'))
  await hand.end()
}
