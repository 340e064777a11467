import { useEffect, useState } from 'react'
import { get } from '../lib/http'

export interface AgentInfo {
  name: string
  mode: string
  description?: string
  hidden?: boolean
}

export interface ModelInfo {
  provider: string
  id: string
  name: string
  context: number
}

export interface CommandInfo {
  name: string
  description?: string
}

export interface Catalog {
  agents: AgentInfo[]
  models: ModelInfo[]
  commands: CommandInfo[]
  /** Of the configuration: provider/model. */
  model: string | null
}

interface Providers {
  providers: { id: string; name: string; models: Record<string, { id: string; name: string; limit?: { context?: number } }> }[]
  default: Record<string, string>
}

const known = new Map<string, Promise<Catalog>>()

/** What a folder's agent offers. */
export function catalog(directory: string): Promise<Catalog> {
  const there = known.get(directory)
  if (there) return there
  const asked = (async (): Promise<Catalog> => {
    const options = { directory }
    const [agents, providers, commands, config] = await Promise.all([
      get<AgentInfo[]>('/agent', options),
      get<Providers>('/config/providers', options),
      get<CommandInfo[]>('/command', options),
      get<{ model?: string }>('/config', options),
    ])
    const models = providers.providers.flatMap((provider) =>
      Object.values(provider.models).map((model) => ({ provider: provider.id, id: model.id, name: model.name, context: model.limit?.context ?? 0 })),
    )
    return { agents: agents.filter((agent) => agent.mode !== 'subagent' && !agent.hidden), models, commands, model: config.model ?? null }
  })()
  known.set(directory, asked)
  asked.catch(() => known.delete(directory))
  return asked
}

export function useCatalog(directory: string | undefined): Catalog | null {
  const [found, setFound] = useState<Catalog | null>(null)
  useEffect(() => {
    let current = true
    setFound(null)
    if (directory) catalog(directory).then((it) => current && setFound(it)).catch(() => undefined)
    return () => {
      current = false
    }
  }, [directory])
  return found
}
