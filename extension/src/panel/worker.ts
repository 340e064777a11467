import type { Notice } from '../session/host'

const FIRST_PAUSE = 200

/** Follows the worker. When it dies, it is connected to again, which wakes it; `again` is called then. */
export function follow(take: (notice: Notice) => void, again: () => void): () => void {
  let port: chrome.runtime.Port | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  const connect = () => {
    port = chrome.runtime.connect({ name: 'panel' })
    port.onMessage.addListener(take)
    port.onDisconnect.addListener(() => {
      timer = setTimeout(() => {
        connect()
        again()
      }, FIRST_PAUSE)
    })
  }
  connect()
  return () => {
    clearTimeout(timer)
    port?.disconnect()
  }
}
