import { useCallback, useEffect, useState } from 'react'
import { tell } from '../messages'
import type { Question } from '../session/questions'
import { newId } from '../session/ids'
import { Chat } from './Chat'
import { Conversation } from './conversation'
import { Files } from './Files'
import { Handover } from './Handover'
import { Settings } from './Settings'
import { follow } from './worker'

const VIEWS = ['Chat', 'Files', 'Settings'] as const
type View = (typeof VIEWS)[number]

/** The side panel: a conversation, the files of the workspace, the settings. */
export function Panel() {
  const [view, setView] = useState<View>('Chat')
  const { conversation, questions, open } = useConversation()
  return (
    <div className="panel">
      <nav aria-label="Views">
        {VIEWS.map((name) => (
          <button type="button" key={name} aria-current={view === name} onClick={() => setView(name)}>
            {name}
          </button>
        ))}
        <button type="button" onClick={() => open(newId('ses'))}>
          New
        </button>
      </nav>
      {view === 'Chat' && conversation && <Chat conversation={conversation} questions={questions.filter((it) => it.session === conversation.session)} />}
      {view === 'Files' && <Files />}
      {view === 'Settings' && <Settings />}
      {view === 'Files' && conversation && <Handover session={conversation.session} open={open} />}
    </div>
  )
}

function useConversation() {
  const [conversation, setConversation] = useState<Conversation | null>(null)
  const [questions, setQuestions] = useState<Question[]>([])
  const [, draw] = useState(0)
  const open = useCallback((session: string) => void Conversation.open(session).then(setConversation), [])

  useEffect(() => {
    void tell('sessions', {}).then((sessions) => open(sessions[0]?.id ?? newId('ses')))
  }, [open])

  useEffect(() => {
    if (!conversation) return
    const ask = () => void tell('questions', {}).then(setQuestions)
    ask()
    const stop = follow(
      (notice) => {
        if (notice.notice === 'questions') ask()
        else if (conversation.take(notice)) draw((count) => count + 1)
      },
      // Another worker: what was published meanwhile is read from the log.
      () => open(conversation.session),
    )
    return () => {
      stop()
      conversation.close()
    }
  }, [conversation, open])

  return { conversation, questions, open }
}
