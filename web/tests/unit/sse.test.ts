import { describe, expect, it } from 'vitest'
import { Groups, Parser } from '../../src/lib/sse'

const TEXT = ': a comment\n\ndata: {"type":"connected","event":3}\n\ndata: {"type":"removed","conversation":"c","key":"a"}\n\nid: 7\ndata: {"type":"removed","conversation":"c","key":"b"}\r\n\r\ndata: {"type":"status","conversation":"c","status":"busy"}\n\nid: 8\ndata: {"type":"deleted",\ndata: "conversation":"c"}\n\ndata: not json\n\ndata: {"type":"removed","conversation":"c","key":"half"}\n\n'

function read(pieces: string[]) {
  const [parser, groups] = [new Parser(), new Groups()]
  return pieces.flatMap((piece) => parser.push(piece)).flatMap((frame) => groups.push(frame))
}

describe('a stream of server-sent events', () => {
  it('says the same however it is cut', () => {
    const whole = read([TEXT])
    for (let size = 1; size < 40; size++) {
      const pieces: string[] = []
      for (let at = 0; at < TEXT.length; at += size) pieces.push(TEXT.slice(at, at + size))
      expect(read(pieces)).toEqual(whole)
    }
  })

  it('gives all items of a record its number, and keeps those back whose record is not complete', () => {
    expect(read([TEXT]).map((sent) => [sent.item.type, sent.seq])).toEqual([
      ['connected', null],
      ['removed', 7],
      ['removed', 7],
      ['status', null],
      ['deleted', 8],
    ])
  })
})
