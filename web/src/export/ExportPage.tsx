import { useRef, useState } from 'react'
import { Virtualizer } from 'virtua'
import { count, dollars, folder, moment } from '../lib/format'
import { href, useRoute } from '../lib/router'
import { setTheme, theme } from '../lib/theme'
import { EntryRow } from '../ui/EntryRow'
import { Icon } from '../ui/Icon'
import { Empty } from '../ui/states'
import type { Shown } from './document'

/** The conversations of a file: the first, and those of its subagents by links. */
export function ExportPage({ document: all }: { document: Shown[] }) {
  const route = useRoute()
  const wanted = route.view === 'conversation' ? all.find((one) => one.info.id === route.id) : undefined
  const shown = wanted ?? all[0]
  if (!shown) return <Empty icon="file" title="No conversation" text="This file holds no conversation that can be read." />
  return <OneConversation key={shown.info.id} shown={shown} all={all} />
}

function OneConversation({ shown, all }: { shown: Shown; all: Shown[] }) {
  const { info, origin, open } = shown
  const scroller = useRef<HTMLDivElement>(null)
  const rows = open.model.rows()
  const above = all.find((one) => one.info.id === info.parentID)
  const tokens = info.tokens.input + info.tokens.cache.read + info.tokens.output
  return (
    <div className="conversation exported">
      <header className="view-head">
        <div className="titles">
          <h1>{info.title || 'Untitled'}</h1>
          <p>
            {above && (
              <>
                <a href={href({ view: 'conversation', id: above.info.id, tab: 'talk' })}>subagent of {above.info.title || 'another conversation'}</a> ·{' '}
              </>
            )}
            <span title={info.directory}>{folder(info.directory)}</span> · {moment(info.time.created)}
            {origin && (
              <>
                {' '}
                · imported from {origin.program} {origin.version}
              </>
            )}
            {info.model && <> · {info.model.id}</>}
          </p>
        </div>
        {tokens > 0 && (
          <span className="meter" title="Cost of this conversation">
            {dollars(info.cost)} · {count(tokens)} tokens
          </span>
        )}
        <ThemeButton />
      </header>
      <main className="talk">
        <div className="scroller" ref={scroller} tabIndex={0} role="log" aria-label="Conversation" aria-live="off">
          <div className="column">
            <h2 className="visually-hidden">Messages</h2>
            {rows.length === 0 && <Empty icon="comment" title="Nothing was said" text="This conversation has no messages." />}
            <Virtualizer scrollRef={scroller} data={rows} bufferSize={600}>
              {(key) => <EntryRow key={key} id={key} open={open} directory={info.directory} />}
            </Virtualizer>
          </div>
        </div>
      </main>
    </div>
  )
}

/** Light or dark: as the system is until somebody says otherwise. */
function ThemeButton() {
  const [, setShown] = useState(theme())
  const next = document.documentElement.dataset['theme'] === 'dark' ? 'light' : 'dark'
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={next === 'dark' ? 'Dark' : 'Light'}
      onClick={() => {
        setTheme(next)
        setShown(next)
      }}
    >
      <Icon name={next === 'dark' ? 'moon' : 'sun'} />
    </button>
  )
}
