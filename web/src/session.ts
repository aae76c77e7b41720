// The session: the signed-in principal, sign-in and sign-out.
import { deleteSession, getSession, login, type Principal } from "./api.gen";
import { Problem } from "./call";

let current: Principal | undefined;

// mark is the key in local storage that exists while this browser has a session. Without it resume sends no
// request, because a 401 response would be an error on the console. The session is an HttpOnly cookie.
const sessionKey = "headgate-session";

/** principal returns the signed-in principal. */
export function principal(): Principal {
	if (!current) throw new Error("not signed in");
	return current;
}

/** mayChange reports whether the user interface offers changes. The API authorizes each request. */
export function mayChange(): boolean {
	return current?.role === "operator" || current?.role === "tenant";
}

/** isOperator reports whether the principal is an operator. */
export function isOperator(): boolean {
	return current?.role === "operator";
}

/** resume loads the principal of an existing session, and returns false if there is none. */
export async function resume(): Promise<boolean> {
	if (localStorage.getItem(sessionKey) === null) return false;
	try {
		current = (await getSession()).data;
		return true;
	} catch (e) {
		if (e instanceof Problem && e.status === 401) {
			localStorage.removeItem(sessionKey);
			return false;
		}
		throw e;
	}
}

/** signIn starts a session with a token. */
export async function signIn(token: string): Promise<void> {
	current = (await login({ token: token.trim() })).data;
	localStorage.setItem(sessionKey, "1");
}

/** signOut deletes the session. If that fails, the browser stays signed in. */
export async function signOut(): Promise<void> {
	try {
		await deleteSession();
	} catch (e) {
		if (!(e instanceof Problem && e.status === 401)) throw e; // the session had expired
	}
	current = undefined;
	localStorage.removeItem(sessionKey);
}

/** isTenantSession reports whether the token belongs to a tenant, and so sees only objects of that tenant. */
export function isTenantSession(): boolean {
	return current?.tenant !== undefined;
}
