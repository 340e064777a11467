import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { Virtualizer, type VirtualizerHandle } from 'virtua'
import type { Conversation } from '../api'
import { live, type Open } from '../state/live'
import { useSignal } from '../state/signal'
import { EntryRow, Writing } from '../ui/EntryRow'
import { Icon } from '../ui/Icon'
import { Empty, Failed, Loading } from '../ui/states'
import { WaitingCard } from '../ui/Waiting'

/** Pixels from the top at which older messages are asked for. */
const EARLY = 1500
/** Pixels from the end that count as the end. */
const NEAR = 40

/** A conversation, the newest at the bottom. Only what is in view is drawn. */
export function Talk({ open, info }: { open: Open; info: Conversation }) {
  useSignal(open.rows)
  useSignal(live.list)
  const scroller = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const handle = useRef<VirtualizerHandle>(null)
  const sticks = useRef(true)
  const [isAway, setAway] = useState(false)
  const rows = open.model.rows()
  const before = useRef<string[]>([])
  const waiting = live.waitingOf(info.id)

  // Rows put in front must not move what is looked at.
  const isOlder = rows.length > before.current.length && rows[0] !== before.current[0] && rows.at(-1) === before.current.at(-1)
  useEffect(() => {
    before.current = rows
  }, [rows])

  useEffect(() => {
    void open.begin()
  }, [open])

  const toEnd = useCallback(() => {
    const box = scroller.current
    if (box) box.scrollTop = box.scrollHeight
  }, [])

  const look = useCallback(() => {
    const [box, list] = [scroller.current, handle.current]
    if (!box || !list) return
    const rest = box.scrollHeight - box.scrollTop - box.clientHeight
    sticks.current = rest < NEAR
    setAway(rest > box.clientHeight)
    if (box.scrollTop < EARLY) void open.older()
    void open.look(list.findItemIndex(box.scrollTop), list.findItemIndex(box.scrollTop + box.clientHeight))
  }, [open])

  // Whatever grows at the end keeps the end in view, if it was.
  useEffect(() => {
    const [box, inner] = [scroller.current, content.current]
    if (!box || !inner) return
    const observer = new ResizeObserver(() => {
      if (sticks.current) toEnd()
    })
    observer.observe(inner)
    observer.observe(box)
    return () => observer.disconnect()
  }, [toEnd, open, rows.length > 0])

  useLayoutEffect(() => {
    sticks.current = true
    toEnd()
  }, [open, toEnd])

  useEffect(() => {
    if (rows.length && scroller.current && scroller.current.scrollTop < EARLY) void open.older()
  }, [rows, open])

  const works = info.status !== 'idle'
  if (!rows.length) {
    if (open.error) return <Failed message={open.error} retry={() => void open.begin()} />
    if (open.model.next === undefined) return <Loading label="Loading the conversation" />
  }
  return (
    <div className="talk">
      <div className="scroller" ref={scroller} onScroll={look} tabIndex={0} role="log" aria-label="Conversation" aria-live="off">
        <div className="column" ref={content}>
          <h2 className="visually-hidden">Messages</h2>
          {rows.length === 0 && !waiting.length && <Empty icon="comment" title="Nothing was said yet" text="Write below what is to be done. The agent works in the folder that is named above." />}
          {rows.length > 0 && open.model.next === null && <p className="beginning">The beginning of this conversation</p>}
          <Virtualizer ref={handle} scrollRef={scroller} data={rows} shift={isOlder} bufferSize={600}>
            {(key) => <EntryRow key={key} id={key} open={open} directory={info.directory} />}
          </Virtualizer>
          {works && !waiting.length && (
            <div className="row working">
              <Writing /> {info.status === 'retry' && <span className="quiet">The provider is asked again</span>}
            </div>
          )}
          {waiting.map((one) => (
            <div className="row" key={one.request.id}>
              <WaitingCard waiting={one} directory={info.directory} />
            </div>
          ))}
          {open.error && rows.length > 0 && <Failed message={open.error} retry={() => void open.older()} />}
        </div>
      </div>
      {isAway && (
        <button
          type="button"
          className="to-end"
          onClick={() => {
            sticks.current = true
            toEnd()
          }}
        >
          <Icon name="down" /> To the end
        </button>
      )}
    </div>
  )
}
