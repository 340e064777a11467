import { useEffect, useRef, useState } from 'react'
import type { Entry } from '@web/api'
import { ToolCard } from '@web/ui/cards'
import { Markdown } from '@web/ui/Markdown'
import { tell } from '../messages'
import type { Question, Reply } from '../session/questions'
import { newId } from '../session/ids'
import type { Conversation } from './conversation'

/** A conversation: its messages, what waits for a person, and where a prompt is written. */
export function Chat({ conversation, questions }: { conversation: Conversation; questions: Question[] }) {
  const end = useRef<HTMLDivElement>(null)
  const entries = conversation.entries()
  useEffect(() => end.current?.scrollIntoView(), [entries.length, conversation.draft])
  return (
    <main className="chat">
      <div className="messages" role="log" aria-label="Conversation">
        {entries.map((entry) => (
          <Row key={entry.key} entry={entry} />
        ))}
        {conversation.draft && <div className="answer writing"><Markdown text={conversation.draft} /></div>}
        {conversation.report && <p className="notice bad" role="alert">{conversation.report}</p>}
        {questions.map((question) => (
          <QuestionCard key={question.id} question={question} />
        ))}
        <div ref={end} />
      </div>
      <Prompt conversation={conversation} />
    </main>
  )
}

function Row({ entry }: { entry: Entry }) {
  const { role, messageType, content, metadata } = entry.message
  if (messageType === 'tool_use' || messageType === 'tool_execution' || messageType === 'tool_result') return <ToolCard entry={entry} directory="/" />
  if (messageType === 'error') {
    const name = String((metadata as Record<string, unknown>)['name'] ?? 'Error')
    return <p className="notice bad" role="alert"><strong>{name}</strong> {content}</p>
  }
  if (!content) return null
  return <div className={`row ${role}`}>{role === 'user' ? <p className="prompt">{content}</p> : <Markdown text={content} />}</div>
}

const REPLIES: [Reply, string][] = [['once', 'Allow once'], ['always', 'Always here'], ['reject', 'Refuse']]

function QuestionCard({ question }: { question: Question }) {
  return (
    <section className="waiting permission" aria-label={`Permission: ${question.title}`}>
      <p className="waiting-title">{question.title}?</p>
      <p className="mono">{question.pattern}</p>
      {REPLIES.filter(([reply]) => reply !== 'always' || question.always !== null).map(([reply, words]) => (
        <button type="button" key={reply} onClick={() => void tell('answer', { id: question.id, reply })}>
          {words}
        </button>
      ))}
    </section>
  )
}

function Prompt({ conversation }: { conversation: Conversation }) {
  const [text, setText] = useState('')
  const [error, setError] = useState('')
  const { session, running } = conversation
  const send = () => {
    const prompt = text.trim()
    if (!prompt) return
    setError('')
    // The prompt has its name before it is sent: sent again, it is the same one.
    tell('prompt', { session, text: prompt, turn: newId('trn') }).then(
      () => setText(''),
      (problem: unknown) => setError(problem instanceof Error ? problem.message : String(problem)),
    )
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      {error && <p className="bad" role="alert">{error}</p>}
      <textarea
        aria-label="Prompt"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey) return
          event.preventDefault()
          send()
        }}
      />
      {running ? <button type="button" onClick={() => void tell('cancel', { session })}>Stop</button> : <button type="submit">Send</button>}
    </form>
  )
}
