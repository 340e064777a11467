import { EventSourceParserStream } from 'eventsource-parser/stream'
import type { Fields, Json, ModelSignal, NamedError, Usage } from '../kernel/types'
import type { Request } from '../session/request'
import { toWire } from './history'

/** Where a model is asked: an address that speaks OpenAI's chat completions. */
export interface Provider {
  url: string
  model: string
  key: string
}

type Draft = (index: number, text: string) => void

/** Statuses after which the same request may go well. */
const RETRIED = [408, 409, 429, 500, 502, 503, 504]
const MAX_TRIES = 4
const FIRST_PAUSE = 1000

/** Asks a model. Pieces of texts go to `draft`; what is complete comes as signals, the last of which is `finished` or `failed`. */
export async function* stream(provider: Provider, request: Request, stopped: AbortSignal, draft: Draft): AsyncGenerator<ModelSignal> {
  try {
    const response = await ask(provider, request, stopped)
    yield { signal: 'started' }
    yield* read(response, draft)
  } catch (error) {
    yield { signal: 'failed', error: named(error, stopped) }
  }
}

async function ask(provider: Provider, request: Request, stopped: AbortSignal): Promise<Response> {
  const { options, temperature, topP, maxOutputTokens } = request.params
  const body = {
    ...(typeof options === 'object' ? (options as Fields) : {}),
    model: provider.model,
    messages: toWire(request.system, request.messages),
    ...(request.tools.length ? { tools: request.tools.map(({ name, description, parameters }) => ({ type: 'function', function: { name, description, parameters } })) } : {}),
    ...(typeof temperature === 'number' ? { temperature } : {}),
    ...(typeof topP === 'number' ? { top_p: topP } : {}),
    ...(typeof maxOutputTokens === 'number' ? { max_tokens: maxOutputTokens } : {}),
    stream: true,
    stream_options: { include_usage: true },
  }
  const headers = { ...request.headers, 'content-type': 'application/json', ...(provider.key ? { authorization: `Bearer ${provider.key}` } : {}) }
  const url = `${provider.url.replace(/\/$/, '')}/chat/completions`
  for (let tries = 1; ; tries++) {
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body), signal: stopped })
    if (response.ok) return response
    const text = (await response.text()).slice(0, 500)
    if (!RETRIED.includes(response.status) || tries === MAX_TRIES) throw new ProviderError(response.status, text)
    await pause(FIRST_PAUSE * 2 ** (tries - 1), stopped)
  }
}

class ProviderError extends Error {
  constructor(
    readonly status: number,
    text: string,
  ) {
    super(`the model's provider answered ${status}: ${text}`)
  }
}

function pause(ms: number, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    stopped.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(stopped.reason as Error)
    })
  })
}

function named(error: unknown, stopped: AbortSignal): NamedError {
  const message = error instanceof Error ? error.message : String(error)
  if (stopped.aborted) return { name: 'MessageAbortedError', data: { message: 'stopped' } }
  return { name: 'APIError', data: error instanceof ProviderError ? { message, statusCode: error.status } : { message } }
}

interface Delta {
  content?: string | null
  tool_calls?: { index: number; id?: string; function?: { name?: string; arguments?: string } }[]
}

interface Chunk {
  choices?: { delta?: Delta; finish_reason?: string | null }[]
  usage?: { prompt_tokens?: number; completion_tokens?: number; prompt_tokens_details?: { cached_tokens?: number } } | null
}

/** What is being streamed. */
class Answer {
  text = ''
  calls: { id: string; tool: string; raw: string }[] = []
  reason = ''
  usage: Usage = { input: 0, output: 0, reasoning: 0, cache_read: 0, cache_write: 0 };

  *take(chunk: Chunk, draft: Draft): Generator<ModelSignal> {
    if (chunk.usage) {
      this.usage.input = chunk.usage.prompt_tokens ?? 0
      this.usage.output = chunk.usage.completion_tokens ?? 0
      this.usage.cache_read = chunk.usage.prompt_tokens_details?.cached_tokens ?? 0
    }
    const choice = chunk.choices?.[0]
    if (choice?.finish_reason) this.reason = choice.finish_reason
    if (choice?.delta?.content) {
      if (!this.text) yield { signal: 'text_start', index: 0 }
      this.text += choice.delta.content
      draft(0, this.text)
    }
    for (const piece of choice?.delta?.tool_calls ?? []) {
      const known = this.calls[piece.index]
      const call = known ?? { id: piece.id ?? '', tool: piece.function?.name ?? '', raw: '' }
      if (!known) {
        this.calls[piece.index] = call
        yield { signal: 'tool_start', call_id: call.id, tool: call.tool }
      }
      call.raw += piece.function?.arguments ?? ''
    }
  }

  *end(): Generator<ModelSignal> {
    if (this.text) yield { signal: 'text_end', index: 0, text: this.text }
    for (const { id, tool, raw } of this.calls) yield { signal: 'tool_end', call_id: id, tool, raw }
    yield { signal: 'finished', reason: this.reason.replace('_', '-'), usage: this.usage }
  }
}

async function* read(response: Response, draft: Draft): AsyncGenerator<ModelSignal> {
  if (!response.body) throw new Error('the model gave an empty answer')
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
  const answer = new Answer()
  for await (const { data } of events) {
    if (data === '[DONE]') break
    const chunk = JSON.parse(data) as Chunk & { error?: Json }
    if (chunk.error) throw new Error(`the model's provider says: ${JSON.stringify(chunk.error)}`)
    yield* answer.take(chunk, draft)
  }
  if (!answer.reason) throw new Error('the answer of the model broke off')
  yield* answer.end()
}
