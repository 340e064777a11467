// A server that requires a login, and its authorization server; prints its port. The record of requests is at
// /seen.
import http from 'node:http'
import { createHash } from 'node:crypto'

// With the mode `apart` the authorization server has a port of its own, and a request for tokens at the first one is a theft.

const modes = new Set(process.argv.slice(2))
const seen = []
const codes = new Map()
let serial = 0
let moved = false
let endpoint = '/token'
let login = null
const failures = {}
let token = null
let refresh = null
let scope = 'notes'

const json = (response, status, value, headers = {}) => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(value))
}

function tokens(response) {
  token = `access-${++serial}`
  refresh = `refresh-${serial}`
  json(response, 200, { access_token: token, token_type: 'Bearer', refresh_token: refresh, ...(modes.has('short') ? { expires_in: 1 } : { expires_in: 3600 }), scope })
}

function handle(request, response, body, base) {
  const url = new URL(request.url, base)
  const at = url.pathname
  if (at === '/seen') return json(response, 200, seen)
  if (at === '/move') { moved = true; return json(response, 200, {}) }
  if (at === '/endpoint') { endpoint = url.searchParams.get('at'); return json(response, 200, {}) }
  if (at === '/provider') return response.end(login ?? base)
  if (at === '/fail') { failures[url.searchParams.get('what')] = Number(url.searchParams.get('status')); return json(response, 200, {}) }
  if (at === '/expire') { token = 'gone'; if (url.searchParams.has('refresh')) refresh = 'gone'; return json(response, 200, {}) }
  if (at.startsWith('/.well-known/oauth-protected-resource') && failures.resource) return json(response, failures.resource, {})
  if (at.startsWith('/.well-known/o') && failures.login && at.slice(13).split('/')[0] !== 'oauth-protected-resource') return json(response, failures.login, {})
  if (at === '/.well-known/oauth-protected-resource/mcp') return json(response, 200, { resource: modes.has('foreign') ? 'https://example.com/mcp' : `${base}/mcp`, authorization_servers: [`${login ?? base}/${moved ? 'elsewhere' : 'login'}`], scopes_supported: ['notes'] })
  if (at === '/.well-known/oauth-authorization-server/login' || at === '/.well-known/oauth-authorization-server/elsewhere') {
    return json(response, 200, {
      issuer: modes.has('mixed') ? 'https://bank.test' : base + at.slice(at.lastIndexOf('/')), authorization_response_iss_parameter_supported: modes.has('names'), authorization_endpoint: `${base}/authorize`, token_endpoint: base + endpoint,
      ...(modes.has('closed') ? {} : { registration_endpoint: `${base}/register` }),
      code_challenge_methods_supported: modes.has('plain') ? ['plain'] : ['S256'],
    })
  }
  if (at === '/register') {
    seen.push(['register', JSON.parse(body).redirect_uris.length, JSON.parse(body).token_endpoint_auth_method])
    return json(response, 201, { client_id: 'client-1', client_id_issued_at: 1 })
  }
  if (at === '/authorize') {
    const query = url.searchParams
    scope = query.get('scope') ?? ''
    seen.push(['authorize', query.get('client_id'), query.get('scope'), query.get('resource') === `${base}/mcp`])
    const back = new URL(query.get('redirect_uri'))
    back.searchParams.set('state', query.get('state'))
    if (modes.has('answers')) back.searchParams.set('iss', 'https://bank.test')
    if (modes.has('denied')) back.searchParams.set('error', 'access_denied')
    else {
      const code = `code-${++serial}`
      codes.set(code, query.get('code_challenge'))
      back.searchParams.set('code', code)
    }
    response.writeHead(302, { location: back.href })
    return response.end()
  }
  if (at === '/token' || at === endpoint) {
    const form = new URLSearchParams(body)
    if (login && base !== login) { seen.push(['stolen', form.get('refresh_token'), form.get('client_secret')]); return tokens(response) }
    if (endpoint !== '/token') seen.push(['elsewhere', endpoint])
    seen.push(['token', form.get('grant_type'), form.get('client_id')])
    if (form.get('grant_type') === 'refresh_token') {
      if (form.get('refresh_token') !== refresh) return json(response, 400, { error: 'invalid_grant', error_description: 'used before' })
      return tokens(response)
    }
    if (form.get('grant_type') === 'client_credentials') return tokens(response)
    const challenge = codes.get(form.get('code'))
    codes.delete(form.get('code'))
    if (createHash('sha256').update(form.get('code_verifier') ?? '').digest('base64url') !== challenge) return json(response, 400, { error: 'invalid_grant' })
    return tokens(response)
  }
  if (at !== '/mcp') { response.writeHead(404); return response.end() }
  if (request.headers.authorization !== `Bearer ${token}`) {
    return json(response, 401, {}, { 'www-authenticate': `Bearer resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"` })
  }
  const { id, method } = JSON.parse(body || '{}')
  if (method === 'tools/call' && (modes.has('more') && !scope.includes('write') || modes.has('never'))) {
    return json(response, 403, {}, { 'www-authenticate': 'Bearer error="insufficient_scope", scope="write"' })
  }
  if (id === undefined) { response.writeHead(202); return response.end() }
  const results = {
    initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'locked' } },
    'tools/list': { tools: [{ name: 'say', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: 'let in' }] },
  }
  json(response, 200, { jsonrpc: '2.0', id, result: results[method] })
}

const listen = (then) => http.createServer((request, response) => {
  let body = ''
  request.on('data', (chunk) => { body += chunk })
  request.on('end', () => handle(request, response, body, `http://${request.headers.host}`))
}).listen(0, '127.0.0.1', function () { then(this.address().port) })

if (modes.has('apart')) listen((port) => { login = `http://127.0.0.1:${port}`; listen(console.log) })
else listen(console.log)
