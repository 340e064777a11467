import type { FrameSite, Grant } from '../../kernel/operations'
import type { Fields, Json, ToolOutput } from '../../kernel/types'
import { normal } from '../../workspace/path'
import { fileQuestion } from '../files'
import { type Ask, type Context, object, type Tool, ToolError } from '../tool'
import { type Done, type Given, Writer } from './act'
import type { Tab } from './desk'
import { Element } from './element'
import { judged } from './judge'
import { observe } from './page'
import { Points } from './points'
import { dialogError, expect, page, point, provided, ref, string, tab, text, whole } from './shared'
import { permissionOf, siteOf } from './site'

const ACTIONS = [
  'click', 'double_click', 'hover', 'drag', 'type', 'fill', 'select', 'check', 'uncheck', 'press', 'scroll', 'upload', 'download', 'dialog', 'navigate', 'back',
  'forward', 'reload', 'wait', 'tab_close', 'tab_switch',
]

/** What an action is, as the kernel says. */
interface About {
  kind: string
  risk: string
  should_change: boolean
}

/** What an action is aimed at. */
interface Aim {
  words: string
  submits: boolean
  /** What of the user's it holds. */
  field: string | null
}

/** An action that is about to be done. */
interface Planned {
  tab: Tab
  url: string
  input: Fields
  about: About
  aim: Aim
  given: Given
}

/** `browser_action`: one thing that is done, and whether it had its effect. */
export const action: Tool = {
  name: 'browser_action',
  description:
    'Does one thing in the browser, and says whether it had an effect. Name the target by its reference (`ref`). Give `expect` where you know what has to happen: it is waited for, and `failed_verify` says what was seen instead. `unchanged` means that nothing on the page changed.',
  parameters: object(
    {
      action: { type: 'string', enum: ACTIONS }, tab, ref, to: ref, at: point, to_at: point, text: string, secret: string, values: { type: 'array', items: string },
      url: string, path: string, by: point, accept: { type: 'boolean' }, submit: { type: 'boolean' }, button: { type: 'string', enum: ['left', 'right', 'middle'] },
      focus: { type: 'boolean' }, expect, timeout_ms: whole,
    },
    ['action'],
  ),
  contract: 'browser.write',
  repeatable: false,
  permissions,
  async run(input, context) {
    const planned = await plan(input, context)
    const grant = await leased(context, planned)
    const points = pointsOf(context, planned)
    await points.before()
    return carriedOut(context, grant, planned, points)
  },
}

async function permissions(input: Fields, context: Context): Promise<Ask[]> {
  if (input['action'] === 'navigate') return [permissionOf(String(input['url']))]
  const asks = [...(await page(input, context)), ...(await reached(input, context))]
  const file = { filePath: input['path'] ?? '' }
  if (input['action'] === 'upload') asks.push(...(await fileQuestion('read')(file, context)))
  if (input['action'] === 'download') asks.push(...(await fileQuestion('edit')(file, context)))
  return asks
}

/** The questions about frames of other sites that an action may reach: those of its elements, or all of the page's, as natively. */
async function reached(input: Fields, context: Context): Promise<Ask[]> {
  const { kernel, desk } = context.host
  const it = provided(context).tab(context.call.session_id, input['tab'])
  const { url = '' } = await chrome.tabs.get(it.id)
  const open = desk.records.dialog(it.id)
  // A dialog is its frame's. Behind it no frame answers; the rules of the tab count.
  if (open) return URL.canParse(open.url) ? kernel.call('browser.frames', { page: url, frames: [{ origin: new URL(open.url).origin, url: open.url }] }).map(permissionOf) : []
  const sites: FrameSite[] = []
  for (const reference of [input['ref'], input['to']]) {
    if (typeof reference === 'string') sites.push(...(await (await Element.of(kernel, desk, it, reference)).sites()))
  }
  const isAnywhere = (input['at'] && !input['ref']) || (input['to_at'] && !input['to']) || (input['action'] === 'press' && !input['ref'])
  if (isAnywhere) {
    const target = desk.target(it)
    // One of them may go meanwhile.
    const all = await Promise.all((await target.frames()).map((frame) => target.site(frame).catch(() => null)))
    sites.push(...all.filter((site) => site !== null))
  }
  return kernel.call('browser.frames', { page: url, frames: sites }).map(permissionOf)
}

/** Decides what an action is about. */
async function plan(input: Fields, context: Context): Promise<Planned> {
  const desk = provided(context)
  const it = desk.tab(context.call.session_id, input['tab'])
  const open = desk.dialog(it)
  if (open && input['action'] !== 'dialog' && input['action'] !== 'tab_close') {
    throw dialogError(open)
  }
  const aim = typeof input['ref'] === 'string' ? await aimed(context, it, input['ref']) : { words: '', submits: false, field: null }
  const about = context.host.kernel.call('browser.action', { action: input, target: aim.words, submits: aim.submits })
  if (about.missing) throw ToolError.failed(`browser_action: ${about.missing}`)
  if (aim.field && desk.protects(aim.field) && input['secret'] === undefined && (about.kind === 'type' || about.kind === 'fill')) {
    throw ToolError.denied(`The field holds a ${aim.field} of the user's: it is neither read nor typed in without a grant; a secret of the user is typed by its name, and the settings grant fields of a kind`)
  }
  if (typeof input['url'] === 'string') await siteOf(context.host, input['url'])
  const { url = '' } = await chrome.tabs.get(it.id)
  return { tab: it, url, input, about, aim, given: await given(input, context, it) }
}

/** What is typed or uploaded. */
async function given(input: Fields, { host }: Context, it: Tab): Promise<Given> {
  const { secret } = input
  if (typeof secret === 'string') {
    const element = await Element.of(host.kernel, host.desk, it, String(input['ref'] ?? ''))
    return { text: host.settings.secrets.get(secret, await element.sites()), secret }
  }
  const typed = String(input['text'] ?? '')
  if (input['action'] !== 'upload') return { text: typed }
  const path = normal(String(input['path']))
  const bytes = await host.workspace.read(path)
  if (!bytes) throw ToolError.failed(`There is no file ${path}`)
  return { text: typed, file: { name: path.split('/').at(-1) ?? path, bytes } }
}

/** What an action is aimed at, as rules and hooks are asked about it. */
async function aimed({ host: { kernel, desk } }: Context, it: Tab, reference: string): Promise<Aim> {
  const element = await Element.of(kernel, desk, it, reference)
  const said = await element.describe()
  const of = (name: string) => (typeof said[name] === 'string' ? said[name] : '')
  const field = kernel.call('browser.field', { kind: of('type'), autocomplete: of('autocomplete'), name: of('name'), id: of('id') })
  return { words: element.words, submits: said['submits'] === true, field }
}

/** The lease for an action. Where a person has taken the tab, the person is asked before the agent goes on. */
async function leased(context: Context, { tab: it, url, about, aim }: Planned): Promise<Grant> {
  const { host, call, stopped } = context
  const owner = host.desk.owner(call.session_id, call.agent)
  try {
    return await host.desk.lease(it, owner)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'lease.person')) throw error
    const what = `${about.kind.replaceAll('_', ' ')} ${aim.words}`.trim()
    const title = `You have clicked or typed in the tab ${it.name}. May the agent continue in it with: ${what}`
    if (!(await host.questions.ask(call.session_id, { permission: 'browser', pattern: url, always: null, title }, stopped))) throw error
    await host.desk.handBack(it)
    return host.desk.lease(it, owner)
  }
}

function pointsOf(context: Context, { tab: it, url, input, about, aim }: Planned): Points {
  const to = typeof input['url'] === 'string' ? input['url'] : null
  return new Points(context, { action: about.kind, risk: about.risk, tab: it.name, url, target: aim.words, field: aim.field, to })
}

async function carriedOut(context: Context, grant: Grant, planned: Planned, points: Points): Promise<ToolOutput> {
  const { desk, kernel } = context.host
  const { tab: it, input, about, aim, given: what } = planned
  const since = desk.records.mark()
  const sent = { since, opened: desk.openedBy(it).length, typed: what.text, isKept: aim.field !== null || input['secret'] !== undefined }
  try {
    const before = desk.records.dialog(it.id) ? '' : (await observe(kernel, desk, it, since)).text
    const came = await new Writer(context, it, grant, what).act(input)
    desk.uses(it)
    if (about.kind === 'tab_close') return await closed(planned, points)
    if (came.download) came.notes.push(await taken(context, input, came.download))
    const verdict = await judged(context, it, input, about.kind, { ...sent, before, came })
    const added = (await points.after()) + (await points.verified(verdict))
    const answer = answerOf(context, planned, came, verdict, sent.opened)
    await desk.keep()
    return { ...answer, output: answer.output + added }
  } catch (error) {
    throw await points.failed(error)
  }
}

async function closed({ tab: it, about }: Planned, points: Points): Promise<ToolOutput> {
  const added = (await points.after()) + (await points.verified({ status: 'done', sentence: '' }))
  return text(about.kind, `tab_close ${it.name}: done${added}`, { tab: it.name, status: 'done', verify: 'done' })
}

/** Puts a download into the workspace. */
async function taken({ host, key }: Context, input: Fields, { name, bytes }: NonNullable<Done['download']>): Promise<string> {
  const path = normal(String(input['path']))
  await host.workspace.write(path, bytes, key)
  return `The download ${JSON.stringify(name)} (${bytes.length} bytes) is at ${path}.`
}

/** What the model reads of an action. */
function answerOf({ host: { kernel, desk } }: Context, { tab: it, about }: Planned, came: Done, verdict: Awaited<ReturnType<typeof judged>>, opened: number): ToolOutput {
  const said = [`${about.kind} ${it.name}: ${verdict.status}`]
  if (verdict.status === 'unchanged') said.push('It was sent, but nothing that can be observed on the page changed.')
  said.push(...came.notes)
  const tabs = desk.openedBy(it).slice(opened).map((one) => one.name)
  said.push(...tabs.map((name) => `It opened the tab ${name}.`))
  const content = [desk.hide(verdict.sentence), verdict.dialog ?? kernel.call('browser.changed', { tab: it.name })].filter(Boolean).join('\n')
  if (content.trim()) said.push(kernel.call('browser.mark', { url: verdict.url, text: content }))
  const metadata = { tab: it.name, url: verdict.url, status: verdict.status, verify: verdict.status, unmet: verdict.unmet as unknown as Json, opened: tabs }
  return text(`${about.kind} ${it.name}`, said.join('\n'), metadata)
}
