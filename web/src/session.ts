// Who is signed in.
import { deleteSession, getSession, login, type Principal } from "./api.gen";
import { Problem } from "./call";

let who: Principal | undefined;

// Whether this browser has a session is written down here: who has none is not asked for it, which would be
// an error on the console. The session itself is a cookie that no script sees.
const mark = "headgate-session";

export function me(): Principal {
	if (!who) throw new Error("nobody is signed in");
	return who;
}

/** mayChange tells whether changes are worth offering; the API decides. */
export function mayChange(): boolean {
	return who?.role === "operator" || who?.role === "tenant";
}

export function isOperator(): boolean {
	return who?.role === "operator";
}

/** resume goes on with the session that there is, if there is one. */
export async function resume(): Promise<boolean> {
	if (localStorage.getItem(mark) === null) return false;
	try {
		who = (await getSession()).data;
		return true;
	} catch (e) {
		if (e instanceof Problem && e.status === 401) {
			localStorage.removeItem(mark);
			return false;
		}
		throw e;
	}
}

export async function signIn(token: string): Promise<void> {
	who = (await login({ token: token.trim() })).data;
	localStorage.setItem(mark, "1");
}

export async function signOut(): Promise<void> {
	who = undefined;
	localStorage.removeItem(mark);
	await deleteSession();
}

/** isTenants tells whether one sees what is a tenant's, and nothing else. */
export function isTenants(): boolean {
	return who?.tenant !== undefined;
}
