import { useEffect, useState } from 'react'
import type { SearchHit, SearchPage } from '../api'
import { get, query } from '../lib/http'
import { message } from './live'

const LIMIT = 20
/** Shorter words are in nearly every text. */
const MIN_LENGTH = 2
/** Pages without a hit after which a person is asked whether to go on. */
const MAX_EMPTY = 20

export interface Found {
  hits: SearchHit[]
  /** There may be more. */
  more: (() => void) | null
  searching: boolean
  error: string | null
}

const NOTHING: Found = { hits: [], more: null, searching: false, error: null }

/** Texts of all conversations that have the words, as far as they were looked for. */
export function useSearch(words: string): Found {
  const [found, setFound] = useState<Found>(NOTHING)
  useEffect(() => {
    setFound(NOTHING)
    const q = words.trim()
    if (q.length < MIN_LENGTH) return
    const stopped = new AbortController()
    const look = async (cursor: string | null, known: SearchHit[]): Promise<void> => {
      setFound({ hits: known, more: null, searching: true, error: null })
      try {
        let next = cursor
        let hits: SearchHit[] = []
        for (let n = 0; n < MAX_EMPTY && !hits.length; n++) {
          const page = await get<SearchPage>(`/outrigger/v1/search${query({ q, limit: LIMIT, cursor: next })}`, { signal: stopped.signal })
          hits = page.hits
          next = page.next
          if (next === null) break
        }
        const all = [...known, ...hits]
        setFound({ hits: all, more: next === null ? null : () => void look(next, all), searching: false, error: null })
      } catch (error) {
        if (!stopped.signal.aborted) setFound({ hits: known, more: null, searching: false, error: message(error) })
      }
    }
    const timer = setTimeout(() => void look(null, []), 250)
    return () => {
      clearTimeout(timer)
      stopped.abort()
    }
  }, [words])
  return found
}
