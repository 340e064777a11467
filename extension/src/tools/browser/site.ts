import type { Host } from '../../session/host'
import { type Ask, ToolError } from '../tool'

/** Hosts of this machine and its network, as parts of regular expressions that both JavaScript and the browser's rules (RE2) have. */
export const LOCAL = [
  'localhost\\.?', '[^/]*\\.localhost\\.?', '(0|10|127|22[4-9]|2[3-5]\\d)\\.[\\d.]*', '100\\.(6[4-9]|[7-9]\\d|1[01]\\d|12[0-7])\\.[\\d.]*', '169\\.254\\.[\\d.]*',
  '172\\.(1[6-9]|2\\d|3[01])\\.[\\d.]*', '192\\.(168|0\\.0)\\.[\\d.]*', '198\\.1[89]\\.[\\d.]*', '\\[.*\\]',
]
const IS_LOCAL = new RegExp(`^(${LOCAL.join('|')})$`)

/** Whether a host, as the browser writes it, is of this machine or its network. What a name leads to is not known here. */
export function isLocal(hostname: string): boolean {
  return IS_LOCAL.test(hostname)
}

/** The question about an address. */
export function permissionOf(url: string): Ask {
  const parsed = URL.canParse(url) ? new URL(url) : null
  return { permission: 'browser', pattern: url, always: parsed ? `${parsed.origin}/*` : url, title: `Use ${parsed?.host ?? url}` }
}

/** The origin of an address; empty where it has none, or a `*` stands in it. */
export function originOf(url: string): string {
  const { origin, protocol } = URL.canParse(url) ? new URL(url) : { origin: 'null', protocol: '' }
  return protocol.startsWith('http') && !origin.includes('*') ? origin : ''
}

/** An address that may be shown, as the kernel judges; a person or a rule has allowed it by name, or it would not have come here. */
export async function siteOf({ kernel, desk }: Host, url: string): Promise<string> {
  if (!URL.canParse(url)) throw ToolError.denied(`${url} is not an address: addresses begin with http:// or https://`)
  const { protocol, hostname, port, href } = new URL(url)
  const scheme = protocol.slice(0, -1)
  const number = port ? Number(port) : scheme === 'https' ? 443 : 80
  const local = [`${scheme}://${hostname}:${number}`]
  kernel.call('browser.site', { scheme, host: hostname, port: number, is_local: isLocal(hostname), local })
  await desk.network.opens(href)
  return href
}
