/** What a panel asks the worker, and what it answers. */
import type { Grant } from './kernel/operations'
import type { Session } from './log/database'
import { type Handover, handedOver, type TakenOver, takenOver } from './session/handover'
import type { Host } from './session/host'
import type { Question, Reply } from './session/questions'
import type { Keys, Settings } from './session/settings'

interface Call<With, Ok> {
  with: With
  ok: Ok
}
type Nothing = Record<string, never>

export interface Messages {
  sessions: Call<Nothing, Session[]>
  /** What was published in a session, for the panel's own fold; whether a turn runs. */
  conversation: Call<{ session: string }, { records: string[]; running: boolean }>
  /** `turn` makes a prompt that is sent again the same prompt. */
  prompt: Call<{ session: string; text: string; turn: string }, { turn: string }>
  cancel: Call<{ session: string }, null>
  ended: Call<{ session: string }, null>
  /** A conversation for another program, and one of another program. */
  export: Call<{ session: string }, Handover>
  import: Call<{ text: string }, TakenOver>
  questions: Call<Nothing, Question[]>
  answer: Call<{ id: string; reply: Reply }, boolean>
  settings: Call<Nothing, { settings: Settings; hasKey: boolean }>
  save: Call<{ settings: Partial<Settings> } & Keys, null>
  /** The folder of the bridge that is set; fails where it cannot be reached. */
  bridge: Call<Nothing, string>
  /** Whether the native program uses this browser now, and how many tabs it has. */
  relay: Call<Nothing, { connected: boolean; tabs: number }>
  files: Call<{ folder: string }, string[] | null>
  file: Call<{ path: string }, string | null>
  leases: Call<Nothing, Grant[]>
  /** Tabs that a person has taken. */
  persons: Call<Nothing, string[]>
  verify: Call<Nothing, number | null>
  /** Milliseconds from the start of this worker to the first effect of a turn that it goes on with. */
  status: Call<Nothing, { firstEffect: number | null }>
}

export type Ask = { [Name in keyof Messages]: { op: Name; with: Messages[Name]['with'] } }[keyof Messages]

/** Answers a panel. */
export async function answer(host: Host, ask: Ask): Promise<Messages[keyof Messages]['ok']> {
  switch (ask.op) {
    case 'sessions':
      return (await host.log.database.getAll('sessions')).toSorted((a, b) => b.updated - a.updated)
    case 'conversation':
      return { records: await host.log.events(ask.with.session), running: host.isRunning(ask.with.session) }
    case 'prompt':
      return { turn: await host.prompt(ask.with.session, ask.with.text, ask.with.turn) }
    case 'cancel':
      host.cancel(ask.with.session)
      return null
    case 'ended':
      await host.ended(ask.with.session)
      return null
    case 'export':
      return handedOver(host, ask.with.session)
    case 'import':
      return takenOver(host, ask.with.text)
    case 'questions':
      return host.questions.list()
    case 'answer':
      return host.questions.answer(ask.with.id, ask.with.reply)
    case 'settings':
      return { settings: host.settings.current, hasKey: host.settings.hasKey }
    case 'save':
      await host.save(ask.with.settings, ask.with)
      return null
    case 'bridge':
      return host.bridge.check()
    case 'relay':
      return host.relay.status()
    case 'files':
      return host.workspace.list(ask.with.folder)
    case 'file': {
      const bytes = await host.workspace.read(ask.with.path)
      return bytes && new TextDecoder().decode(bytes)
    }
    case 'leases':
      return host.kernel.call('browser.held', {})
    case 'persons':
      return host.desk.persons
    case 'status':
      return { firstEffect: host.firstEffect }
    case 'verify':
      return host.log.verify()
  }
}

/** Asks the worker; it is woken for that. */
export async function tell<Name extends keyof Messages>(op: Name, ask: Messages[Name]['with']): Promise<Messages[Name]['ok']> {
  const said = (await chrome.runtime.sendMessage({ op, with: ask })) as { ok: Messages[Name]['ok'] } | { error: string } | undefined
  if (!said) throw new Error('The worker of the extension did not answer')
  if ('error' in said) throw new Error(said.error)
  return said.ok
}
