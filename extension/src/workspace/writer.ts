/** The worker that writes large files. A file is written beside its place, read again, moved there, and read once more: what is in its place has the
 * checksum of its plan, or is what was there before. */
import { openDatabase } from '../log/database'
import type { Written } from './large'
import { folderOf, hash, nameOf } from './place'

/** A handle of a worker on a file; the types of documents do not have it. */
interface Access {
  truncate(size: number): void
  write(bytes: Uint8Array<ArrayBuffer>, at: { at: number }): number
  read(bytes: Uint8Array<ArrayBuffer>, at: { at: number }): number
  getSize(): number
  flush(): void
  close(): void
}

/** What a worker has of a file, and what no types have yet. */
type Part = FileSystemFileHandle & { createSyncAccessHandle(): Promise<Access>; move(folder: FileSystemDirectoryHandle, name: string): Promise<void> }

/** Bytes that are written at once. */
const PIECE = 1 << 20
/** Where files are while they are written. */
const PARTS = 'parts'

const database = openDatabase()
let queue: Promise<void> = Promise.resolve()

addEventListener('message', ({ data: key }: MessageEvent<string>) => {
  // One after another: two of them may be about one file.
  queue = queue.then(async () => postMessage(await carryOut(key)))
})

async function carryOut(key: string): Promise<Written> {
  try {
    await write(key)
    return { key }
  } catch (error) {
    const isFull = error instanceof DOMException && error.name === 'QuotaExceededError'
    return { key, error: error instanceof Error ? error.message : String(error), isFull }
  }
}

async function write(key: string): Promise<void> {
  const plan = await (await database).get('plans', key)
  if (!plan) throw new Error(`there is no plan ${key}`)
  const root = await navigator.storage.getDirectory()
  const parts = await root.getDirectoryHandle(PARTS, { create: true })
  const name = key.replaceAll(/[^0-9A-Za-z]/g, '-')
  try {
    const part = (await parts.getFileHandle(name, { create: true })) as Part
    const access = await part.createSyncAccessHandle()
    try {
      put(access, plan.bytes)
      await same(read(access), plan.after, plan.path)
    } finally {
      access.close()
    }
    const folder = await folderOf(plan.path, true)
    if (!folder) throw new Error(`cannot write ${plan.path}: a file stands where a folder is needed`)
    // Over the one that is there.
    await part.move(folder, nameOf(plan.path))
    const file = await (await folder.getFileHandle(nameOf(plan.path))).getFile()
    await same(new Uint8Array(await file.arrayBuffer()), plan.after, plan.path)
  } catch (error) {
    // Where it was moved there is none.
    await parts.removeEntry(name).catch(() => {})
    throw error
  }
}

function put(access: Access, bytes: Uint8Array): void {
  access.truncate(0)
  for (let at = 0; at < bytes.length; at += PIECE) {
    const piece = bytes.subarray(at, at + PIECE) as Uint8Array<ArrayBuffer>
    if (access.write(piece, { at }) < piece.length) throw new DOMException('there is no more room', 'QuotaExceededError')
  }
  access.flush()
}

function read(access: Access): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(access.getSize())
  access.read(bytes, { at: 0 })
  return bytes
}

async function same(bytes: Uint8Array<ArrayBuffer>, wanted: string, path: string): Promise<void> {
  if ((await hash(bytes)) !== wanted) throw new Error(`${path} was not written as it was given: its checksum is another one`)
}
