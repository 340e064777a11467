import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { Virtualizer, type VirtualizerHandle } from 'virtua'
import type { Conversation } from '../api'
import { plural } from '../lib/format'
import { drafts } from '../state/drafts'
import { live, type Open } from '../state/live'
import { useSignal } from '../state/signal'
import { EntryRow, Writing } from '../ui/EntryRow'
import { Icon } from '../ui/Icon'
import { Empty, Failed, Loading } from '../ui/states'
import { RefusedUndo, useUndo } from '../ui/undo'
import { WaitingCard } from '../ui/Waiting'

/** Pixels from the top at which older messages are asked for. */
const EARLY = 1500
/** Pixels from the end that count as the end. */
const NEAR = 40

/** The first key that is taken back. */
function takenBack(info: Conversation): string | null {
  const { revert } = info
  if (!revert) return null
  return revert.partID ? `${revert.messageID}/${revert.partID}` : revert.messageID
}

/** What was taken back is there until the next prompt. */
function TakenBack({ info, count }: { info: Conversation; count: number }) {
  const undo = useUndo(`/session/${info.id}/unrevert`, info.directory, () => drafts.write(info.id, ''))
  return (
    <div className="notice taken" role="status">
      <Icon name="undo" />
      <div>
        <strong>{plural(count, 'message')} taken back, with the changes of files.</strong>
        {undo.refusal ? (
          <RefusedUndo refusal={undo.refusal} label="Bring back anyway" onForce={() => undo.send({ force: true })} onDismiss={undo.dismiss} />
        ) : (
          <p>They are gone with your next prompt.</p>
        )}
      </div>
      <button type="button" onClick={() => undo.send({})}>
        Bring back
      </button>
    </div>
  )
}

/** A conversation, the newest at the bottom. Only what is in view is drawn. */
export function Talk({ open, info, at }: { open: Open; info: Conversation; at: string | undefined }) {
  useSignal(open.rows)
  useSignal(live.list)
  const scroller = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const handle = useRef<VirtualizerHandle>(null)
  const sticks = useRef(true)
  /** Where the conversation stood, and how long it was, when it was last looked at. */
  const stood = useRef({ top: 0, height: 0 })
  const [isAway, setAway] = useState(false)
  const known = open.model.rows()
  const taken = takenBack(info)
  const rows = useMemo(() => (taken === null ? known : known.filter((key) => key < taken)), [known, taken])
  const [found, setFound] = useState<string | null>(null)
  const before = useRef<string[]>([])
  const waiting = live.waitingOf(info.id)

  // Rows added in front must not move what the user looks at.
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
    // It leaves the end when somebody scrolls up, and not when it grows faster than it is drawn.
    if (rest < NEAR) sticks.current = true
    else if (box.scrollTop < stood.current.top && box.scrollHeight >= stood.current.height) sticks.current = false
    stood.current = { top: box.scrollTop, height: box.scrollHeight }
    setAway(rest > box.clientHeight)
    if (box.scrollTop < EARLY) void open.older()
    void open.look(list.findItemIndex(box.scrollTop), list.findItemIndex(box.scrollTop + box.clientHeight))
  }, [open])

  // Keep the end in view while it grows, if it was in view.
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

  useEffect(
    () =>
      open.sent.subscribe(() => {
        sticks.current = true
        toEnd()
      }),
    [open, toEnd],
  )

  // A search result: read back to its entry, then go there.
  const isRead = open.model.next !== undefined
  useEffect(() => {
    if (!at || !isRead) return
    let current = true
    sticks.current = false
    void open.seek(at).then((index) => {
      if (!current || index < 0) return
      setFound(open.model.rows()[index] ?? null)
      // Rows have their heights only after they are drawn.
      const go = (times: number) => {
        if (!current) return
        handle.current?.scrollToIndex(index, { align: 'center' })
        if (times > 0) requestAnimationFrame(() => go(times - 1))
      }
      go(10)
    })
    return () => {
      current = false
    }
  }, [at, open, isRead])

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
            {(key) => <EntryRow key={key} id={key} open={open} directory={info.directory} isFound={key === found} />}
          </Virtualizer>
          {taken !== null && <TakenBack info={info} count={known.length - rows.length} />}
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
          aria-label="To the end"
          onClick={() => {
            sticks.current = true
            toEnd()
          }}
        >
          <Icon name="down" /> <span>To the end</span>
        </button>
      )}
    </div>
  )
}
