/** The document that has the writer of large files: a service worker can start no worker of its own. It does nothing else. */
import type { Asked, Written } from './large'

const writer = new Worker(chrome.runtime.getURL('writer.js'), { type: 'module' })
const waiting = new Map<string, (written: Written) => void>()

writer.addEventListener('message', ({ data }: MessageEvent<Written>) => {
  waiting.get(data.key)?.(data)
  waiting.delete(data.key)
})

chrome.runtime.onMessage.addListener((asked: Partial<Asked>, sender, reply) => {
  if (sender.id !== chrome.runtime.id || asked.to !== 'writer' || asked.key === undefined) return
  waiting.set(asked.key, reply)
  writer.postMessage(asked.key)
  // The answer comes later.
  return true
})
