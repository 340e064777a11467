import { openDB, type DBSchema, type IDBPDatabase } from 'idb'
import type { SealedRow } from '../kernel/operations'
import type { Fields, MessageInfo, Part } from '../kernel/types'

/** A session, as lists show it. Made from the log, as every table but `log` and `kept` is. */
export interface Session {
  id: string
  title: string
  created: number
  updated: number
  cost: number
  input: number
  output: number
}

/** A turn: one that has not ended is gone on with when the worker wakes. */
export interface TurnRow {
  id: string
  session: string
  done: 0 | 1
}

/** What a tool is about to do to a file, written before it does it. Done again, it leads to the same. */
export interface PlannedWrite {
  key: string
  path: string
  /** SHA-256 of the file before and after; `before` is empty where there was none. */
  before: string
  after: string
  bytes: Uint8Array
}

/** A file of the workspace that has been written: what is not there any more was removed by the browser. */
export interface WrittenFile {
  path: string
  size: number
  /** SHA-256. */
  hash: string
}

/** Steps of a turn in one text, line by line: a worker that wakes reads a few of these in place of thousands of rows. Made from the log. */
export interface Pack {
  turn: string
  /** The row of the last step in it. */
  upTo: number
  steps: string
}

interface Tables extends DBSchema {
  /** `step` is there in steps of turns: it is the turn, by which they are found without what else belongs to it. */
  log: { key: number; value: SealedRow & { step?: string }; indexes: { step: [string, number]; session: [string, number] } }
  turns: { key: string; value: TurnRow; indexes: { done: number; session: string } }
  sessions: { key: string; value: Session }
  messages: { key: string; value: MessageInfo; indexes: { session: string } }
  parts: { key: string; value: Part; indexes: { session: string; message: string } }
  packs: { key: [string, number]; value: Pack }
  plans: { key: string; value: PlannedWrite }
  files: { key: string; value: WrittenFile }
  kept: { key: string; value: Fields | string[] }
}

export type Database = IDBPDatabase<Tables>

const VERSION = 2

export function openDatabase(name = 'outrigger'): Promise<Database> {
  return openDB<Tables>(name, VERSION, {
    upgrade(database, before) {
      database.createObjectStore('files', { keyPath: 'path' })
      database.createObjectStore('packs', { keyPath: ['turn', 'upTo'] })
      if (before > 0) return
      const log = database.createObjectStore('log', { keyPath: 'seq' })
      log.createIndex('step', ['step', 'seq'])
      log.createIndex('session', ['session', 'seq'])
      const turns = database.createObjectStore('turns', { keyPath: 'id' })
      turns.createIndex('done', 'done')
      turns.createIndex('session', 'session')
      database.createObjectStore('sessions', { keyPath: 'id' })
      database.createObjectStore('messages', { keyPath: 'id' }).createIndex('session', 'sessionID')
      const parts = database.createObjectStore('parts', { keyPath: 'id' })
      parts.createIndex('session', 'sessionID')
      parts.createIndex('message', 'messageID')
      database.createObjectStore('plans', { keyPath: 'key' })
      database.createObjectStore('kept')
    },
  })
}
