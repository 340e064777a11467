/** What goes with a prompt beside its text. */

/** A part of a prompt, as `POST /session/{id}/prompt_async` takes it. */
export interface FilePart {
  type: 'file'
  mime: string
  filename: string
  url: string
}

/** An image that goes with the next prompt. */
export interface Picture {
  name: string
  mime: string
  url: string
}

/** What models read. */
const MIMES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
/** Bytes of one image. */
const MAX_PICTURE = 8 * 1024 * 1024

/** The images among pasted or dropped files; what is not one is named. */
export async function pictures(files: Iterable<File>): Promise<{ taken: Picture[]; refused: string[] }> {
  const taken: Picture[] = []
  const refused: string[] = []
  for (const file of files) {
    if (!MIMES.has(file.type)) refused.push(`${file.name || 'that file'} is not a PNG, JPEG, GIF or WebP image`)
    else if (file.size > MAX_PICTURE) refused.push(`${file.name || 'that image'} has more than 8 MB`)
    else taken.push({ name: file.name || 'image', mime: file.type, url: await address(file) })
  }
  return { taken, refused }
}

function address(file: File): Promise<string> {
  return new Promise((done, failed) => {
    const reader = new FileReader()
    reader.onload = () => done(String(reader.result))
    reader.onerror = () => failed(reader.error ?? new Error(file.name))
    reader.readAsDataURL(file)
  })
}

/** The word that is being written after an `@`, and where it begins. */
export function mention(text: string, caret: number): { from: number; word: string } | null {
  const found = /(^|[\s(])@([^\s@]*)$/.exec(text.slice(0, caret))
  return found ? { from: caret - (found[2] ?? '').length, word: found[2] ?? '' } : null
}

/** Chosen files that still stand in the text, as parts of the prompt. */
export function mentioned(text: string, chosen: Iterable<string>, directory: string): FilePart[] {
  const stays = [...new Set(chosen)].filter((path) => text.includes(`@${path}`))
  const folder = directory.replace(/\/+$/, '')
  return stays.map((path) => ({ type: 'file', mime: 'text/plain', filename: path, url: `file://${folder}/${path.split('/').map(encodeURIComponent).join('/')}` }))
}
