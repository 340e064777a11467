import { createRoot } from 'react-dom/client'
import { App } from './App'
import { begin } from './lib/auth'
import { beginTheme } from './lib/theme'
import './styles.css'

begin(window.location, window.history)
beginTheme()
const root = document.getElementById('root')
if (root) createRoot(root).render(<App />)
