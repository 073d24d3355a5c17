// SPDX-License-Identifier: MIT
"use strict";

/* What can be done with the frame under the pointer, and copies of text. */
const TOAST_MS = 2000;

/* "java.util." of java.util.HashMap.put, "JavaThread::" of JavaThread::run(); the name itself where there is no more. */
function prefixOf(name) {
	const java = /^((?:[a-z_$][\w$]*\.)+)[A-Z$]/.exec(name), cpp = /^((?:[\w$]+::)+)/.exec(name);
	return java ? java[1] : cpp ? cpp[1] : name;
}

async function copy(text, what) {
	try {
		await navigator.clipboard.writeText(text);
	} catch (error) {
		copyBySelection(text); // for browsers that refuse the clipboard to pages from disk
	}
	byId("announce").textContent = `Copied ${what}`;
	showToast(`Copied ${what}`);
}

let toast = 0; // the timer that hides it

function showToast(text) {
	byId("toast").textContent = text;
	byId("toast").hidden = false;
	clearTimeout(toast);
	toast = setTimeout(() => { byId("toast").hidden = true; }, TOAST_MS);
}

function copyBySelection(text) {
	const area = element("textarea", text);
	document.body.append(area);
	area.select();
	document.execCommand("copy");
	area.remove();
}

/* One frame a line, the leaf first, as Java prints stacks. */
function copyStack(of, node) {
	const frames = of.profile.ancestors(node).slice(of.profile.label[0] === of.profile.rootLabel ? 1 : 0);
	copy(frames.reverse().map(frame => nodeName(frame, of)).join("\n"), "the stack");
}

function menuItems(of, node) {
	const name = nodeName(node, of), prefix = prefixOf(name);
	return [
		["Zoom", () => of === callers ? callers.zoom(node) : zoom(node)],
		[view.method === name ? "Back from callers and callees" : "Callers and callees", () => showAround(name)],
		["Copy name", () => copy(name, "the name")],
		["Copy stack", () => copyStack(of, node)],
		["Search for it", () => searchFor(exactly(name))],
		...(of !== callers && node ? [["Remove stack", () => remove(node)]] : []),
		[`Collapse ${prefix}*`, () => addRule(prefix, "collapse")],
		[`Hide ${prefix}*`, () => addRule(prefix, "hide")],
		[`Only ${prefix}*`, () => addRule(prefix, "only")],
	];
}

function showMenu(of, event) {
	const node = of.nodeAt(event.clientX, event.clientY), menu = byId("menu");
	event.preventDefault();
	hideMenu();
	if (node < 0 || of.profile.label[node] === of.profile.rootLabel)
		return;
	menu.replaceChildren(...menuItems(of, node).map(([text, run]) => {
		const item = element("button", text);
		item.setAttribute("role", "menuitem");
		item.addEventListener("click", () => {
			hideMenu();
			run();
		});
		return item;
	}));
	menu.hidden = false;
	showTooltip(-1);
	menu.style.left = Math.min(event.clientX, innerWidth - menu.offsetWidth - 4) + "px";
	menu.style.top = Math.min(event.clientY, innerHeight - menu.offsetHeight - 4) + "px";
	menu.firstChild.focus({ focusVisible: false });
}

function hideMenu() {
	byId("menu").hidden = true;
}
