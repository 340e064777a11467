import { createRoot } from 'react-dom/client'
import { App } from './App'
import { server } from './lib/server'
import { beginTheme } from './lib/theme'
import './styles.css'

server.begin(window.location, window.history)
beginTheme()
const root = document.getElementById('root')
if (root) createRoot(root).render(<App />)
