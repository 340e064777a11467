import type { Row } from '../kernel/operations'
import type { Fields, Json, MessageInfo, Part } from '../kernel/types'
import type { Session } from '../log/database'
import { type ChatMessage, history } from '../model/history'
import type { Host } from './host'

/** A conversation between programs: the form of `opencode export`, which `outrigger export --format opencode` writes and `outrigger import` reads. */
export interface Handover {
  info: Fields
  messages: ChatMessage[]
}

/** What came of a conversation that was handed over. */
export interface TakenOver {
  session: string
  /** Messages that were not there before. */
  messages: number
}

/** The version of the extension's own form of a session. */
const VERSION = '0.1.0'
/** Messages of a conversation that is taken over, at most. */
const MAX_MESSAGES = 100_000

/** A conversation, for another program. One whose turn runs is not whole. */
export async function handedOver(host: Host, id: string): Promise<Handover> {
  const session = await host.log.database.get('sessions', id)
  if (!session) throw new Error(`There is no conversation ${id}`)
  if (host.isRunning(id)) throw new Error('The agent is still at work in this conversation: wait, or stop it, and export it then')
  return { info: infoOf(session, host), messages: await history(host.log.database, id) }
}

function infoOf(session: Session, { settings }: Host): Fields {
  const { id, title, created, updated, cost, input, output } = session
  const tokens = { input, output, reasoning: 0, cache: { read: 0, write: 0 } }
  const model = { id: settings.current.model, providerID: 'extension' }
  return { id, slug: id, projectID: 'global', directory: '/', path: '', title, agent: settings.current.agent, model, version: VERSION, cost, tokens, time: { created, updated } }
}

/** Takes a conversation over, or what is new of one that is there. All of it is written, or nothing: the kernel reads each message first. */
export async function takenOver(host: Host, text: string): Promise<TakenOver> {
  const { info, messages } = read(text)
  const session = String(info['id'])
  if (host.isRunning(session)) throw new Error('The agent is at work in this conversation: wait, or stop it, and import it then')
  const known = new Set((await host.log.database.getAllKeysFromIndex('messages', 'session', session)).map(String))
  const fresh = messages.filter((message) => !known.has(message.info.id))
  const events = fresh.flatMap((message) => eventsOf(session, message))
  const rows = host.kernel.call('log.events', { at: Date.now(), seed: crypto.getRandomValues(new Uint32Array(1))[0] ?? 0, session, events: events.map((it) => JSON.stringify(it)) })
  const { created, updated } = (info['time'] ?? {}) as Record<string, number>
  const { input, output } = (info['tokens'] ?? {}) as Record<string, number>
  const stored: Session = {
    id: session, title: String(info['title'] ?? ''), created: created ?? Date.now(), updated: updated ?? Date.now(), cost: Number(info['cost'] ?? 0), input: input ?? 0, output: output ?? 0,
  }
  await host.log.takeOver(stored, rows, events)
  host.published(session, rows as Row[])
  return { session, messages: fresh.length }
}

function read(text: string): Handover {
  const wrong = (why: string) => new Error(`This is not a conversation that can be imported: ${why}. Write one with \`outrigger export --format opencode\``)
  let value: Json
  try {
    value = JSON.parse(text) as Json
  } catch (error) {
    throw wrong(error instanceof Error ? error.message : String(error))
  }
  const { info, messages } = (typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}) as Fields
  if (typeof info !== 'object' || info === null || Array.isArray(info) || !Array.isArray(messages)) throw wrong('it has no `info` and `messages`')
  if (!/^ses_[0-9A-Za-z]{1,64}$/.test(String(info['id']))) throw wrong('its session has no identifier')
  if (messages.length > MAX_MESSAGES) throw wrong(`it has more than ${MAX_MESSAGES} messages`)
  return { info, messages: messages as unknown as ChatMessage[] }
}

/** What is published of a message, so that tables and panels take it as any other one. */
function eventsOf(sessionID: string, { info, parts }: ChatMessage): { type: string; properties: Fields }[] {
  const message = { ...info, sessionID } as MessageInfo
  const time = Date.now()
  return [
    { type: 'message.updated', properties: { sessionID, info: message } },
    ...(parts ?? []).map((part) => ({ type: 'message.part.updated', properties: { sessionID, part: ended({ ...part, sessionID, messageID: info.id }), time } })),
  ]
}

/** A call that had not ended when it was exported does not end here: nobody runs it. */
function ended(part: Part): Part {
  const state = (part['state'] ?? {}) as Fields
  if (part.type !== 'tool' || state['status'] === 'completed' || state['status'] === 'error') return part
  const now = Date.now()
  return { ...part, state: { status: 'error', input: state['input'] ?? {}, error: 'interrupted, outcome unknown', time: { start: now, end: now } } }
}
