/** The service worker: it wakes, goes on with what was left, answers panels, and stays as long as a turn runs. */
import { Kernel } from './kernel/kernel'
import { openDatabase } from './log/database'
import { leftTurns } from './log/log'
import { answer, type Ask } from './messages'
import { Host, type Notice } from './session/host'

/** Chrome ends a worker that calls nothing of its own for 30 s. */
const SIGN_OF_LIFE = 20_000
/** The shortest period of an alarm, in minutes: a worker that was ended in a turn is woken by it. */
const HEARTBEAT = 0.5
const ALARM = 'heartbeat'

const panels = new Set<chrome.runtime.Port>()

function notify(notice: Notice): void {
  for (const panel of panels) panel.postMessage(notice)
}

async function wake(): Promise<Host> {
  const opened = openDatabase()
  const [kernel, database, left] = await Promise.all([Kernel.load(chrome.runtime.getURL('kernel.wasm')), opened, opened.then(leftTurns)])
  const host = await Host.wake(kernel, database, left, notify)
  setInterval(() => void (host.isBusy && chrome.runtime.getPlatformInfo()), SIGN_OF_LIFE)
  return host
}

// Listeners are registered before anything is waited for, or the event that woke the worker would be missed.
const woken = wake()

chrome.runtime.onConnect.addListener((panel) => {
  panels.add(panel)
  panel.onDisconnect.addListener(() => panels.delete(panel))
})

chrome.runtime.onMessage.addListener((ask: Ask, sender, reply) => {
  if (sender.id !== chrome.runtime.id) return
  woken
    .then((host) => answer(host, ask))
    .then((ok) => reply({ ok }))
    .catch((error: unknown) => reply({ error: error instanceof Error ? error.message : String(error) }))
  // The answer comes later.
  return true
})

chrome.alarms.onAlarm.addListener(() => void woken.then((host) => host.relay.connect()))
void chrome.alarms.create(ALARM, { periodInMinutes: HEARTBEAT })
void chrome.sidePanel?.setPanelBehavior({ openPanelOnActionClick: true })
