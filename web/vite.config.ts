import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'

// Where `npm run dev` finds a server: outrigger serve --no-auth
const server = process.env.OUTRIGGER_URL ?? 'http://127.0.0.1:4096'
const api = Object.fromEntries(
  ['/outrigger/v1', '/outrigger/plugin', '/session', '/agent', '/config', '/command', '/global', '/project', '/path', '/find', '/outrigger/web/session'].map((path) => [path, { target: server }]),
)

export default defineConfig({
  // Served below /outrigger/web/, all files in one folder.
  base: './',
  plugins: [react()],
  server: { proxy: api },
  preview: { proxy: api },
  build: {
    target: 'es2022',
    assetsDir: '',
    // The folder has a file that keeps it in the repository; `cargo xtask web` empties it.
    emptyOutDir: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    chunkSizeWarningLimit: 1000,
    // One script and one style, loaded at once: a chunk that is fetched later could come from another process that has the port by then.
    cssCodeSplit: false,
    rolldownOptions: { output: { codeSplitting: false } },
  },
  test: { include: ['tests/unit/**/*.test.{ts,tsx}'], environment: 'happy-dom' },
})
