// What Jenkins does with a declarative pipeline, as far as the Jenkinsfile here uses it: agents, parameters, a matrix,
// conditions, post sections, and the steps. Shell steps are executed for real; publishers note what they were given.
//
//     java -cp groovy-all.jar groovy.ui.GroovyMain jenkins_runner.groovy JENKINSFILE ASKED.json TOLD.json
//
// ASKED: {"place": folder, "repository": of the job, "branch": its, "environment": {}, "parameters": {}}.
// TOLD: {"result", "description", "error", "stages": [], "cells": [], "published": []}.

import groovy.json.JsonOutput
import groovy.json.JsonSlurper
import java.nio.file.FileSystems
import java.nio.file.FileVisitOption
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.Paths
import java.nio.file.StandardCopyOption
import org.codehaus.groovy.control.CompilerConfiguration

class Stopped extends RuntimeException {
    Stopped(String message) { super(message) }
}

/** Words of a section, such as `agent { label 'x' }`: each is noted by its name. */
class Words {
    Map noted = [:].withDefault { [] }
    Object invokeMethod(String name, Object given) { noted[name].addAll(given as List); null }
    Object getProperty(String name) { name == 'noted' ? this.@noted : Build.now.visible[name] ?: name }
}

/** `environment { NAME = 'value' }` */
class Assignments {
    Map noted = [:]
    void setProperty(String name, Object value) { if (name == 'noted') { this.@noted = value } else { noted[name] = value } }
    Object getProperty(String name) { name == 'noted' ? this.@noted : noted[name] }
}

class Axes {
    Map values = [:]
    void axis(Closure body) {
        Words words = Build.words(body)
        values[words.noted.name[0]] = words.noted.values
    }
}

/** Conditions of `when`. */
class Conditions {
    List asked = []
    void beforeAgent(boolean first) { }
    void expression(Closure body) { asked << body }
}

/** A stage, or all of the pipeline. */
class Section {
    String name = ''
    Map axes = [:]
    List stages = []
    Closure work, whenever, always, agent

    void agent(Object none) { }
    void agent(Closure body) { agent = body }
    void options(Closure body) { Build.words(body) }
    void when(Closure body) { whenever = body }
    void steps(Closure body) { work = body }
    void axes(Closure body) { Axes all = new Axes(); Build.within(all, body); axes = all.values }
    void matrix(Closure body) { Build.within(this, body) }
    void stages(Closure body) { Build.within(this, body) }
    void stage(String called, Closure body) {
        Section one = new Section(name: called)
        Build.within(one, body)
        stages << one
    }
    void post(Closure body) { Build.within(new Post(section: this), body) }
    void environment(Closure body) {
        Assignments all = new Assignments()
        Build.within(all, body)
        all.noted.each { key, value -> Build.now.environment[key] = value.toString() }
    }
    void parameters(Closure body) {
        Build.within(new Parameters(), body)
        Build.now.environment.putAll(Build.now.params.collectEntries { key, value -> [key, value.toString()] })
    }

    void run() {
        if (axes) {
            List names = axes.keySet() as List
            axes.values().toList().combinations().each { values ->
                Map cell = [names, values].transpose().collectEntries { [(it[0]): it[1].toString()] }
                Build.now.having(cell) { Build.now.attempt { runHere() } }
            }
        } else {
            runHere()
        }
    }

    void runHere() {
        Conditions conditions = new Conditions()
        if (whenever) { Build.within(conditions, whenever) }
        if (!conditions.asked.every { it.call() }) { return }
        if (agent) {
            Build.now.labels << Build.words(agent).noted.label[0].toString()
            Build.now.onAgent { runInside() }
        } else {
            runInside()
        }
    }

    void runInside() {
        Build.now.told.stages << ([name] + Build.now.cell.values()).join(' ')
        try {
            if (work) { Build.now.attempt { work.call() } }
            // No stage begins after one that failed.
            stages.each { one -> if (!Build.now.failed) { one.run() } }
        } finally {
            if (always) { Build.now.attempt { always.call() } }
        }
    }
}

class Post {
    Section section
    void always(Closure body) { section.always = body }
}

class Parameters {
    void string(Map given) { Build.now.params[given.name] = Build.now.asked.parameters[given.name] ?: '' }
    void booleanParam(Map given) { Build.now.params[given.name] = Build.now.asked.parameters[given.name] ?: false }
    void choice(Map given) {
        String chosen = Build.now.asked.parameters[given.name] ?: given.choices[0]
        if (!(chosen in given.choices)) { throw new Stopped("$chosen is no choice of ${given.name}") }
        Build.now.params[given.name] = chosen
    }
}

class Build {
    static Build now
    Map asked, told = [result: 'SUCCESS', description: '', errors: [], stages: [], published: [], said: '']
    Map environment = [:], params = [:], cell = [:]
    List labels = []
    boolean failed = false
    Path here
    int agents = 0

    static Object within(Object delegate, Closure body) {
        Closure own = (Closure) body.clone()
        own.delegate = delegate
        own.resolveStrategy = Closure.DELEGATE_FIRST
        own.call()
    }
    static Words words(Closure body) { Words all = new Words(); within(all, body); all }

    Path getPlace() { Paths.get(asked.place) }
    Map getVisible() { environment + cell }

    void attempt(Closure work) {
        try {
            work.call()
        } catch (Stopped stopped) {
            failed = true
            told.result = 'FAILURE'
            told.errors << stopped.message
        }
    }
    void having(Map more, Closure work) {
        Map before = cell
        boolean was = failed
        cell = before + more
        failed = false  // a cell goes on where another has failed
        try { work.call() } finally { cell = before; failed = failed || was }
    }
    Object with(Map more, Closure work) {
        Map before = environment
        environment = before + more
        try { work.call() } finally { environment = before }
    }
    Object onAgent(Closure work) {
        Path before = here
        here = Files.createDirectories(place.resolve("agent-${++agents}".toString()))
        try { work.call() } finally { here = before }
    }

    /** Files that a pattern of Ant's finds, by their paths from here. */
    List found(String pattern, String excluded = null) {
        if (!Files.exists(here)) { return [] }
        def wanted = FileSystems.default.getPathMatcher('glob:' + pattern)
        def unwanted = excluded ? FileSystems.default.getPathMatcher('glob:' + excluded) : null
        List all = []
        def paths = Files.walk(here, FileVisitOption.FOLLOW_LINKS)
        try {
            for (Path path in paths.iterator()) {
                Path own = here.relativize(path)
                if (Files.isRegularFile(path) && wanted.matches(own) && !unwanted?.matches(own)) { all << own }
            }
        } finally {
            paths.close()
        }
        all.sort()
    }
    void copy(Path from, Path into, List names) {
        names.each { name ->
            Path target = into.resolve(name.toString())
            Files.createDirectories(target.parent)
            Files.copy(from.resolve(name.toString()), target, StandardCopyOption.REPLACE_EXISTING,
                StandardCopyOption.COPY_ATTRIBUTES)
        }
    }
    List allBelow(Path folder) {
        Path before = here
        here = folder
        try { found('**') } finally { here = before }
    }
    int shell(String text) {
        Path file = Files.createTempFile('step', '.sh')
        // A script with a first line of its own is executed, any other is sh's.
        file.toFile().text = text.trim()
        file.toFile().executable = true
        List command = text.trim().startsWith('#!') ? [file.toString()] : ['sh', '-xe', file.toString()]
        ProcessBuilder builder = new ProcessBuilder(command).directory(here.toFile()).redirectErrorStream(true)
        builder.environment().clear()
        builder.environment().putAll(asked.environment + visible.findAll { it.value != null })
        Process process = builder.start()
        process.outputStream.close()
        told.said += process.inputStream.text
        Files.delete(file)
        process.waitFor()
    }
    void git(String... words) {
        Process process = new ProcessBuilder(['git'] + (words as List)).redirectErrorStream(true).start()
        String said = process.inputStream.text
        if (process.waitFor() != 0) { throw new Stopped("git ${words.join(' ')}: $said") }
    }
}

/** The steps that a Jenkinsfile may call anywhere. */
abstract class Steps extends Script {
    Object getProperty(String name) {
        Build build = Build.now
        switch (name) {
            case 'env': return new Environment()
            case 'params': return build.params
            case 'scm': return [own: true, userRemoteConfigs: [[url: build.asked.repository, credentialsId: null]]]
            case 'currentBuild': return build.told
            case 'none': case 'any': return name
        }
        if (!build.visible.containsKey(name)) { throw new MissingPropertyException(name, getClass()) }
        build.visible[name]
    }

    void pipeline(Closure body) {
        Section whole = new Section()
        Build.within(whole, body)
        Build.now.attempt { whole.run() }
    }
    Object script(Closure body) { body.call() }
    Object node(Closure body) { Build.now.onAgent(body) }
    Object lock(Map given, Closure body) { body.call() }
    Object timeout(Map given, Closure body) { body.call() }
    Object withCredentials(List given, Closure body) { body.call() }
    Object withEnv(List given, Closure body) {
        Build.now.with(given.collectEntries { one -> String text = one; int at = text.indexOf('='); [text[0..<at], text.substring(at + 1)] }, body)
    }
    Object catchError(Map given, Closure body) {
        try { body.call() } catch (Stopped stopped) { Build.now.told.errors << stopped.message }
    }
    Object dir(String name, Closure body) {
        Path before = Build.now.here
        Build.now.here = before.resolve(name)
        try { body.call() } finally { Build.now.here = before }
    }
    void deleteDir() { Build.now.here.toFile().deleteDir() }
    void error(Object message) { throw new Stopped(message.toString()) }

    void checkout(Map what) {
        boolean own = what.own
        String url = own ? Build.now.asked.repository : what.userRemoteConfigs[0].url
        String branch = own ? Build.now.asked.branch : what.branches[0].name
        String place = Build.now.here.toString()
        if (!Files.exists(Build.now.here.resolve('.git'))) {
            Files.createDirectories(Build.now.here)
            Build.now.git('init', '--quiet', place)
            Build.now.git('-C', place, 'remote', 'add', 'origin', url)
        }
        Build.now.git('-C', place, 'fetch', '--quiet', 'origin', '+refs/heads/' + branch + ':refs/remotes/origin/' + branch)
        Build.now.git('-C', place, 'checkout', '--quiet', '--force', '--detach', 'origin/' + branch)
    }
    Object sh(String text) { sh(script: text) }
    Object sh(Map given) {
        int code = Build.now.shell(given.script)
        if (given.returnStatus) { return code }
        if (code) { throw new Stopped("script returned exit code $code") }
    }
    String readFile(String name) {
        Path file = Build.now.here.resolve(name)
        if (!Files.exists(file)) { throw new Stopped("java.nio.file.NoSuchFileException: $file") }
        file.toFile().text
    }
    List findFiles(Map given) { Build.now.found(given.glob).collect { [path: it.toString(), name: it.fileName.toString()] } }
    void stash(Map given) {
        List names = Build.now.found(given.includes, given.excludes)
        if (!names && !given.allowEmpty) { throw new Stopped("No files included in stash '${given.name}'") }
        Path into = Build.now.place.resolve("stashes/${given.name}".toString())
        Files.createDirectories(into)
        Build.now.copy(Build.now.here, into, names)
    }
    void unstash(String name) {
        Path from = Build.now.place.resolve("stashes/$name".toString())
        if (!Files.exists(from)) { throw new Stopped("No such saved stash '$name'") }
        Build.now.copy(from, Build.now.here, Build.now.allBelow(from))
    }
    void archiveArtifacts(Map given) {
        List names = Build.now.found(given.artifacts)
        if (!names && !given.allowEmptyArchive) { throw new Stopped('No artifacts found') }
        Build.now.copy(Build.now.here, Build.now.place.resolve('archive'), names)
    }
    // Publishers: a pattern that finds nothing is a fault where the plugin has it as one.
    void published(String name, List files, boolean mayBeNone) {
        if (!files && !mayBeNone) { throw new Stopped("$name: nothing to publish") }
        Build.now.told.published << "$name ${files.size()}".toString()
    }
    void junit(Map given) { published('junit', Build.now.found(given.testResults), given.allowEmptyResults) }
    void robot(Map given) { published('robot', Build.now.found("${given.outputPath}/${given.outputFileName}"), false) }
    void allure(Map given) { published('allure', given.results.findAll { Files.isDirectory(Build.now.here.resolve(it.path)) }, true) }
    void publishHTML(Map given) {
        published('html', Build.now.found("${given.target.reportDir}/${given.target.reportFiles}"), given.target.allowMissing)
    }
}

class Environment {
    Object getProperty(String name) { Build.now.visible[name] }
}

Build build = Build.now = new Build(asked: new JsonSlurper().parse(new File(args[1])))
build.environment.putAll(build.asked.variables)
CompilerConfiguration configuration = new CompilerConfiguration(scriptBaseClass: Steps.name)
GroovyShell shell = new GroovyShell(this.class.classLoader, new Binding(), configuration)
try {
    Steps steps = (Steps) shell.parse(new File(args[0]))
    steps.run()
} finally {
    build.told.labels = build.labels
    new File(args[2]).text = JsonOutput.toJson(build.told)
}
