import type { Database } from '../log/database'
import type { Fields, Json, MessageInfo, Part } from '../kernel/types'

/** A message as hooks read it: what is stored of it. */
export interface ChatMessage {
  info: MessageInfo
  parts: Part[]
}

/** The conversation, oldest first: identifiers ascend with time. */
export async function history(database: Database, session: string): Promise<ChatMessage[]> {
  const [infos, parts] = await Promise.all([
    database.getAllFromIndex('messages', 'session', session),
    database.getAllFromIndex('parts', 'session', session),
  ])
  const of = Map.groupBy(parts.toSorted(byId), (part) => part.messageID)
  return infos.toSorted(byId).map((info) => ({ info, parts: of.get(info.id) ?? [] }))
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : Number(a.id > b.id)
}

/** A message of OpenAI's chat completions. */
export type Wire = { role: string; content: string | null; tool_call_id?: string; tool_calls?: Json[] }

/** The conversation as OpenAI's chat completions take it. */
export function toWire(system: string[], messages: ChatMessage[]): Wire[] {
  const wire: Wire[] = system.map((content) => ({ role: 'system', content }))
  for (const { info, parts } of messages) {
    const text = parts.filter((part) => part.type === 'text').map((part) => String(part['text'] ?? '')).join('\n')
    if (info.role === 'user') {
      if (text) wire.push({ role: 'user', content: text })
      continue
    }
    const calls = parts.filter((part) => part.type === 'tool')
    if (!text && calls.length === 0) continue
    wire.push({ role: 'assistant', content: text || null, ...(calls.length ? { tool_calls: calls.map(callOf) } : {}) })
    for (const call of calls) wire.push({ role: 'tool', tool_call_id: String(call['callID']), content: answerOf(call) })
  }
  return wire
}

function callOf(part: Part): Json {
  const state = (part['state'] ?? {}) as Fields
  return { id: part['callID'] ?? '', type: 'function', function: { name: part['tool'] ?? '', arguments: JSON.stringify(state['input'] ?? {}) } }
}

/** What the model reads of a call. Every call has an answer, or providers refuse the whole request. */
function answerOf(part: Part): string {
  const state = (part['state'] ?? {}) as Fields
  switch (state['status']) {
    case 'completed':
      return String(state['output'] ?? '')
    case 'error':
      return String(state['error'] ?? '')
    default:
      return 'The call has not ended.'
  }
}
