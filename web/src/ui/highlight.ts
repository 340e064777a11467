import { common, createLowlight } from 'lowlight'
import type { Root } from 'hast'

const lowlight = createLowlight(common)

export function highlight(text: string, language: string): Root | null {
  return lowlight.registered(language) ? lowlight.highlight(language, text) : null
}
