import Anser from 'anser'
import { memo, useMemo } from 'react'

/** Rows of a long output that are shown at first. */
export const FOLDED_LINES = 14

/** What a terminal would have done to a line: carriage returns go back, and what is no colour is left out. */
export function settle(text: string): string {
  const plain = text
    // Titles, links and the like, then cursor movements and other sequences that are not colours.
    // eslint-disable-next-line no-control-regex
    .replace(/\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g, '')
    // eslint-disable-next-line no-control-regex
    .replace(/\u001b\[[0-9;:?<>=]*[ -/]*[@-ln-~]/g, '')
    // eslint-disable-next-line no-control-regex
    .replace(/\u001b(?!\[)[ -/]*[0-~]?/g, '')
    .replace(/\r\n/g, '\n')
  return plain
    .split('\n')
    .map((line) => {
      if (!line.includes('\r')) return line
      const parts = line.split('\r').filter((part) => part !== '')
      return parts.length ? (parts[parts.length - 1] as string) : ''
    })
    .join('\n')
    // eslint-disable-next-line no-control-regex
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f]/g, '')
}

function colour(name: string | null, truecolor: string | null): string | undefined {
  if (!name) return undefined
  if (name === 'ansi-truecolor') return truecolor ? `rgb(${truecolor})` : undefined
  const palette = /^ansi-palette-(\d+)$/.exec(name)?.[1]
  if (palette) return indexed(Number(palette))
  return `var(--${name})`
}

/** One of the 256 colours. */
function indexed(number: number): string {
  if (number >= 232) {
    const grey = 8 + (number - 232) * 10
    return `rgb(${grey},${grey},${grey})`
  }
  const level = (step: number) => (step === 0 ? 0 : 55 + step * 40)
  const rest = number - 16
  return `rgb(${level(Math.floor(rest / 36))},${level(Math.floor(rest / 6) % 6)},${level(rest % 6)})`
}

/** A text with the colours of a terminal. */
export const Ansi = memo(function Ansi({ text }: { text: string }) {
  const pieces = useMemo(() => Anser.ansiToJson(settle(text), { json: true, remove_empty: true, use_classes: true }), [text])
  return (
    <>
      {pieces.map((piece, key) => {
        const decorations = piece.decorations ?? []
        const fg = colour(piece.fg, piece.fg_truecolor)
        const bg = colour(piece.bg, piece.bg_truecolor)
        if (!fg && !bg && !decorations.length) return piece.content
        const names = decorations.map((it) => `ansi-${it}`).join(' ')
        return (
          <span key={key} className={names || undefined} style={{ color: fg, backgroundColor: bg }}>
            {piece.content}
          </span>
        )
      })}
    </>
  )
})
