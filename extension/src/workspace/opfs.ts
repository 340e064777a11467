import type { Database } from '../log/database'
import { normal } from './path'

/** The workspace: a folder of the browser's own, which no page and no other program sees (OPFS).
 *
 * A change of a file is planned before it is made: the plan says what the file was and what it will be, under the key of the call. A call
 * that is made again after the worker died finds its plan, and does what is left of it. */
export class Workspace {
  constructor(private readonly database: Database) {}

  /** The bytes of a file, or null where there is none. */
  async read(path: string): Promise<Uint8Array | null> {
    const handle = await this.#file(path, false)
    return handle ? new Uint8Array(await (await handle.getFile()).arrayBuffer()) : null
  }

  /** Names in a folder, those of folders with a slash; null where it is none. */
  async list(path: string): Promise<string[] | null> {
    const folder = await this.#folder(normal(path).split('/').filter(Boolean), false)
    if (!folder) return null
    const names: string[] = []
    for await (const [name, handle] of folder.entries()) names.push(handle.kind === 'directory' ? `${name}/` : name)
    return names.toSorted()
  }

  /** Writes a whole file. */
  write(path: string, bytes: Uint8Array, key: string): Promise<void> {
    return this.#carryOut(key, path, async () => bytes)
  }

  /** Changes the text of a file that is there. */
  change(path: string, key: string, make: (before: string) => string): Promise<void> {
    return this.#carryOut(key, path, async (before) => {
      if (!before) throw new Error(`There is no file ${path}`)
      return new TextEncoder().encode(make(new TextDecoder().decode(before)))
    })
  }

  async #carryOut(key: string, path: string, make: (before: Uint8Array | null) => Promise<Uint8Array>): Promise<void> {
    const before = await this.read(path)
    const now = before ? await hash(before) : ''
    let plan = await this.database.get('plans', key)
    if (!plan) {
      const bytes = await make(before)
      plan = { key, path, before: now, after: await hash(bytes), bytes }
      await this.database.put('plans', plan)
    }
    if (now === plan.after) return
    // A file that is half written is what the plan left; any other one is somebody else's.
    if (now !== plan.before && before && !startsWith(plan.bytes, before)) {
      throw new Error(`${path} was changed while the change of it was under way; read it again`)
    }
    await this.#put(path, plan.bytes)
  }

  async #put(path: string, bytes: Uint8Array): Promise<void> {
    const handle = await this.#file(path, true)
    if (!handle) throw new Error(`${path} cannot be written: a file stands where a folder is needed`)
    try {
      // What is written is in place only when the stream is closed: a worker that dies leaves the file as it was.
      const stream = await handle.createWritable()
      await stream.write(bytes as Uint8Array<ArrayBuffer>)
      await stream.close()
    } catch (error) {
      if (error instanceof DOMException && error.name === 'QuotaExceededError') {
        throw new Error(`${path} cannot be written: the browser gives this extension no more room; delete files of the workspace`)
      }
      throw error
    }
  }

  async #file(path: string, create: boolean): Promise<FileSystemFileHandle | null> {
    const names = normal(path).split('/').filter(Boolean)
    const name = names.pop()
    if (!name) return null
    const folder = await this.#folder(names, create)
    return folder && found(folder.getFileHandle(name, { create }))
  }

  async #folder(names: string[], create: boolean): Promise<FileSystemDirectoryHandle | null> {
    const root = await navigator.storage.getDirectory()
    let folder: FileSystemDirectoryHandle | null = await found(root.getDirectoryHandle('workspace', { create: true }))
    for (const name of names) folder = folder && (await found(folder.getDirectoryHandle(name, { create })))
    return folder
  }
}

/** What a handle is asked for, or null where there is nothing of its kind. */
async function found<T>(handle: Promise<T>): Promise<T | null> {
  try {
    return await handle
  } catch (error) {
    if (error instanceof DOMException && (error.name === 'NotFoundError' || error.name === 'TypeMismatchError')) return null
    throw error
  }
}

function startsWith(whole: Uint8Array, part: Uint8Array): boolean {
  return part.length <= whole.length && part.every((byte, place) => byte === whole[place])
}

async function hash(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>)
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
