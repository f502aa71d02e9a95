// Runs a tool of hark that emscripten has built: in a worker by runTool(), and under node as
//   node wasm/tool.mjs build-wasm/bin/mel.js ARGUMENT... < audio.wav > audio.mel

// Runs the tool once, on a fresh instance, and returns its exit status. `create` is the
// createTool() of the tool's script. input(bytes) fills the beginning of a Uint8Array and returns
// how many bytes that were, 0 at the end of stdin; output(bytes) and errors(bytes) take what is
// written to stdout and stderr. prepare(FS) may add files before the tool begins.
export async function runTool(create, name, args, { input, output, errors, prepare, environment }) {
    const module = await create({
        thisProgram: name,
        preRun: [(instance) => Object.assign(instance.ENV, environment)],
    });
    const { FS } = module;
    prepare?.(FS);
    const writer = (write) => ({
        write: (_stream, memory, offset, length) => {
            write(new Uint8Array(memory.buffer, memory.byteOffset + offset, length));
            return length;
        },
    });
    const reader = {
        read: (_stream, memory, offset, length) =>
            input(new Uint8Array(memory.buffer, memory.byteOffset + offset, length)),
    };
    // emscripten's own streams take one character at a time, and change bytes that are not UTF-8.
    [reader, writer(output), writer(errors)].forEach((operations, fd) => {
        const device = FS.makedev(64, fd), path = `/dev/stream${fd}`;
        FS.registerDevice(device, operations);
        FS.mkdev(path, device);
        FS.close(FS.getStream(fd));
        FS.open(path, fd === 0 ? 0 : 1);  // takes the lowest free number, which is fd
    });
    return module.callMain(args);
}

// The host's folders have the same paths for the tool, and so has the working directory.
function mountHost(fs, FS) {
    for (const entry of fs.readdirSync('/', { withFileTypes: true })) {
        if (!entry.isDirectory() || ['dev', 'proc', 'sys'].includes(entry.name)) continue;
        FS.mkdirTree(`/${entry.name}`);
        FS.mount(FS.filesystems.NODEFS, { root: `/${entry.name}` }, `/${entry.name}`);
    }
    FS.chdir(process.cwd());
}

async function main() {
    const fs = await import('node:fs');
    const { basename, resolve } = await import('node:path');
    const { pathToFileURL } = await import('node:url');
    const [file, ...args] = process.argv.slice(2);
    if (!file) {
        console.error('tool.mjs: expected the file of a tool (TOOL.js) and its arguments');
        return 2;
    }
    const write = (fd) => (bytes) => {
        for (let done = 0; done < bytes.length;) done += fs.writeSync(fd, bytes, done);
    };
    const { default: create } = await import(pathToFileURL(resolve(file)));
    return runTool(create, basename(file, '.js'), args, {
        input: (bytes) => fs.readSync(0, bytes, 0, bytes.length, null),
        output: write(1),
        errors: write(2),
        prepare: (FS) => mountHost(fs, FS),
        environment: process.env,
    });
}

// No await here: a worker would lose messages that come before its modules are done.
if (globalThis.process?.versions?.node)
    main().then((status) => {
        process.exitCode = status;
    });
