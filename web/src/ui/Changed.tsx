import type { ChangedValue, RecordedValue } from '../api'
import { bytes, plural } from '../lib/format'
import { Diff } from './Diff'
import { compare } from './diff'

/** What a hook changed, place by place. Of a record that has no values the places alone. */
export function Changed({ places, values, more }: { places: string[]; values: ChangedValue[]; more: number }) {
  if (!values.length) {
    return (
      <ul className="mono">
        {places.map((at) => (
          <li key={at}>{at || '/'}</li>
        ))}
      </ul>
    )
  }
  return (
    <div className="changed-values">
      {values.map((value, key) => (
        <Place key={key} value={value} />
      ))}
      {more > 0 && <p className="quiet">{plural(more, 'further place')} changed.</p>}
    </div>
  )
}

function Place({ value: { at, before, after } }: { value: ChangedValue }) {
  const isCompared = before?.kind !== 'digest' && after?.kind !== 'digest'
  return (
    <section>
      <h3 className="mono">
        {at || '/'} {!before && <span className="tag">added</span>}
        {!after && <span className="tag">removed</span>}
      </h3>
      {isCompared ? (
        <Diff change={compare(at || '/', textOf(before), textOf(after))} />
      ) : (
        <dl className="figures">
          {before && <Side name="before" value={before} />}
          {after && <Side name="after" value={after} />}
        </dl>
      )}
      {isCompared && <Part value={after?.kind === 'excerpt' ? after : before} />}
    </section>
  )
}

/** Which part of a long text is shown. */
function Part({ value }: { value: RecordedValue | undefined }) {
  if (value?.kind !== 'excerpt') return null
  return (
    <p className="quiet">
      A part of {bytes(value.bytes)}, after the first {bytes(value.from)}.
    </p>
  )
}

/** A value of which only its hash is kept. */
function Side({ name, value }: { name: string; value: RecordedValue }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value.kind === 'digest' ? `${bytes(value.bytes)}, SHA-256 ${value.sha256.slice(0, 12)}` : textOf(value)}</dd>
    </div>
  )
}

/** As people read it: a text as it is, anything else as JSON. */
function textOf(value: RecordedValue | undefined): string {
  if (!value || value.kind === 'digest') return ''
  if (value.kind === 'excerpt') return value.text
  return typeof value.value === 'string' ? value.value : JSON.stringify(value.value, null, 2)
}
