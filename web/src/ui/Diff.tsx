import { Fragment, memo, useMemo, useState, type ReactNode } from 'react'
import { plural } from '../lib/format'
import { type FileChange, type Hunk, type Line, sideBySide } from './diff'
import { Icon } from './Icon'

/** Lines of a file that are shown at first. */
const FOLDED = 40

interface CommentSide {
  /** Comments by line of the new file (of the old one with a minus). */
  of(line: number): ReactNode
  write(line: number, text: string): void
}

interface Props {
  change: FileChange
  split?: boolean
  comments?: CommentSide | undefined
  /** All lines at once. */
  whole?: boolean
}

/** What changed in a file. */
export const Diff = memo(function Diff({ change, split = false, comments, whole = false }: Props) {
  const [all, setAll] = useState(whole)
  const total = useMemo(() => change.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0), [change])
  if (change.tooLong) return <p className="quiet pad">The two versions are too different to compare line by line: {plural(change.added, 'line')} new, {plural(change.removed, 'line')} old.</p>
  if (!total) return <p className="quiet pad">No line differs.</p>
  let left = all ? Number.POSITIVE_INFINITY : FOLDED
  const shown: Hunk[] = []
  for (const hunk of change.hunks) {
    if (left <= 0) break
    shown.push({ lines: hunk.lines.slice(0, left) })
    left -= hunk.lines.length
  }
  return (
    <div className="diff">
      <div className="diff-scroll" tabIndex={0} role="region" aria-label={`Changes of ${change.path}`}>
        <table className={split ? 'split' : 'unified'}>
          <tbody>
            {shown.map((hunk, key) => (
              <Fragment key={key}>
                {key > 0 && (
                  <tr className="gap">
                    <td colSpan={4}>
                      <span aria-hidden="true">⋯</span>
                    </td>
                  </tr>
                )}
                {split ? <Split hunk={hunk} comments={comments} /> : <Unified hunk={hunk} comments={comments} />}
              </Fragment>
            ))}
          </tbody>
        </table>
      </div>
      {!all && total > FOLDED && (
        <button type="button" className="more" onClick={() => setAll(true)}>
          Show {plural(total - FOLDED, 'more line')}
        </button>
      )}
    </div>
  )
})

function Text({ line }: { line: Line }) {
  if (!line.marks) return <>{line.text || ' '}</>
  return (
    <>
      {line.marks.map((mark, key) => (mark.changed ? <mark key={key}>{mark.text}</mark> : <span key={key}>{mark.text}</span>))}
    </>
  )
}

function Sign({ line }: { line: Line }) {
  const sign = line.kind === 'old' ? '-' : line.kind === 'new' ? '+' : ' '
  return <span className="sign">{sign}</span>
}

/** Of a line of the new file, or with a minus of the old one: the button that opens the form. */
function AddComment({ at, open }: { at: number; open(at: number): void }) {
  return (
    <button type="button" className="add-comment" aria-label={`Comment on ${at < 0 ? 'removed line' : 'line'} ${Math.abs(at)}`} onClick={() => open(at)}>
      <Icon name="plus" />
    </button>
  )
}

/** Below a line: what was said of it, and the form where something is being written. */
function Comments({ at, comments, isWriting, done }: { at: number; comments: CommentSide; isWriting: boolean; done(): void }) {
  return (
    <>
      {comments.of(at)}
      {isWriting && (
        <tr className="comment-row">
          <td colSpan={4}>
            <CommentForm
              done={(text) => {
                if (text) comments.write(at, text)
                done()
              }}
            />
          </td>
        </tr>
      )}
    </>
  )
}

function Unified({ hunk, comments }: { hunk: Hunk; comments: CommentSide | undefined }) {
  const [writing, setWriting] = useState<number | null>(null)
  return (
    <>
      {hunk.lines.map((line, key) => {
        const at = line.new ?? -(line.old ?? 0)
        return (
          <Fragment key={key}>
            <tr className={line.kind}>
              <td className="number">{line.old}</td>
              <td className="number">{line.new}</td>
              <td className="text">
                <Sign line={line} />
                <Text line={line} />
                {comments && <AddComment at={at} open={setWriting} />}
              </td>
            </tr>
            {comments && <Comments at={at} comments={comments} isWriting={writing === at} done={() => setWriting(null)} />}
          </Fragment>
        )
      })}
    </>
  )
}

function CommentForm({ done }: { done: (text: string) => void }) {
  const [text, setText] = useState('')
  return (
    <form
      className="comment-form"
      onSubmit={(event) => {
        event.preventDefault()
        done(text.trim())
      }}
    >
      <textarea
        autoFocus
        rows={2}
        value={text}
        aria-label="Comment"
        placeholder="What should change here? It goes with your next prompt."
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') done('')
          if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) done(text.trim())
        }}
      />
      <div className="buttons">
        <button type="submit" className="primary" disabled={!text.trim()}>
          Add comment
        </button>
        <button type="button" onClick={() => done('')}>
          Cancel
        </button>
      </div>
    </form>
  )
}

function Split({ hunk, comments }: { hunk: Hunk; comments: CommentSide | undefined }) {
  const [writing, setWriting] = useState<number | null>(null)
  return (
    <>
      {sideBySide(hunk.lines).map(({ left, right }, key) => {
        // Comments on an unchanged line refer to the new file.
        const old = left?.kind === 'old' ? -(left.old ?? 0) : null
        const now = right?.new ?? null
        return (
          <Fragment key={key}>
            <tr>
              <td className="number">{left?.old}</td>
              <td className={`text ${left?.kind ?? 'none'}`}>
                {left && <Text line={left} />}
                {comments && old !== null && <AddComment at={old} open={setWriting} />}
              </td>
              <td className="number">{right?.new}</td>
              <td className={`text ${right?.kind ?? 'none'}`}>
                {right && <Text line={right} />}
                {comments && now !== null && <AddComment at={now} open={setWriting} />}
              </td>
            </tr>
            {comments && [old, now].map((at) => at !== null && <Comments key={at} at={at} comments={comments} isWriting={writing === at} done={() => setWriting(null)} />)}
          </Fragment>
        )
      })}
    </>
  )
}

export function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span className="counts">
      <span className="plus">+{added}</span> <span className="minus">−{removed}</span>
    </span>
  )
}
