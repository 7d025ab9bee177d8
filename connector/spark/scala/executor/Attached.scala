package org.apache.spark.executor.bellows

import java.lang.Thread.UncaughtExceptionHandler
import java.lang.reflect.UndeclaredThrowableException
import java.net.URL
import java.security.PrivilegedExceptionAction
import java.util.concurrent.{CompletableFuture, ExecutionException, TimeoutException}

import org.apache.hadoop.fs.FileSystem
import org.apache.hadoop.security.UserGroupInformation

import org.apache.spark.{SparkConf, SparkEnv}
import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.executor.{CoarseGrainedExecutorBackend, Executor}
import org.apache.spark.executor.CoarseGrainedExecutorBackend.RegisteredExecutor
import org.apache.spark.internal.Logging
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.rpc.{RpcAddress, RpcEnv}
import org.apache.spark.scheduler.bellows.{Active, Payload}
import org.apache.spark.scheduler.cluster.CoarseGrainedClusterMessages.{LaunchedExecutor, Shutdown, StopExecutor}
import org.apache.spark.shuffle.IndexShuffleBlockResolver
import org.apache.spark.storage.bellows.{Binding, Shrinking}
import org.apache.spark.util.{MutableURLClassLoader, Utils}

/** What hears of the ends of applications in this JVM, from any thread. */
private[bellows] trait Ends {
  /** The driver of an application is gone, or has ended what it has here. */
  def gone(application: Attached, why: String): Unit
}

/**
 * An application in this JVM. It has a user of its own (UserGroupInformation), so that no application gets the file
 * systems and credentials of another one, a directory for its files, and the environment and executor of Spark.
 */
private[bellows] final class Attached(val key: String, val name: String, val executorId: String, payload: Payload,
    cores: Int, shared: SharedLoader, ends: Ends, handler: UncaughtExceptionHandler) extends Logging {

  val user: UserGroupInformation = SparkHadoopUtil.get.createSparkUser()
  @volatile private var executor: WarmBackend = _
  @volatile private var environment: SparkEnv = _
  @volatile private var level: Option[String] = payload.conf.collectFirst { case ("spark.log.level", name) => name }

  def env: SparkEnv = environment

  def backend: WarmBackend = executor

  /**
   * Connects to the driver and registers with it. It returns when the driver knows the executor. It throws if that has
   * failed or takes longer than some seconds; then the application must be detached nevertheless. The environment of
   * Spark is this application's afterwards.
   */
  def attach(seconds: Long): Unit = {
    LogLevel.use(level)
    asUser {
      val host = Utils.localHostName()
      environment = SparkEnv.createExecutorEnv(conf, executorId, host, host, cores, payload.ioKey, isLocal = false)
      environment.driverTmpDir = Some(Utils.createTempDir(Utils.getLocalDir(environment.conf), "files").getPath)
      executor = new WarmBackend(environment.rpcEnv, payload.url, executorId, host, cores, environment, this, shared,
        handler)
      environment.rpcEnv.setupEndpoint("Executor", backend)
    }
    if (!new Patience().await(seconds * 1000, 1)(backend.launched.isDone)) {
      throw new TimeoutException(s"the driver has not answered for $seconds s")
    }
    try backend.launched.get()
    catch { case e: ExecutionException => throw e.getCause }
  }

  private def conf: SparkConf = {
    val conf = new SparkConf(false)
    payload.conf.foreach { case (key, value) => conf.set(key, value) }
    conf.set("spark.app.id", payload.app)
    conf.set("spark.executor.id", executorId)
    conf.set("spark.files.useFetchCache", "false") // It would keep files when the application has ended.
    conf.setIfMissing("spark.python.task.killTimeout", "300ms") // Until then others wait for the executor.
    val jars = conf.get(Attached.InitialJars, "").split(',').filter(j => j.nonEmpty && !j.endsWith("/" + Attached.Jar))
    if (jars.isEmpty) conf.remove(Attached.InitialJars) else conf.set(Attached.InitialJars, jars.mkString(","))
    conf
  }

  private def asUser[A](body: => A): A =
    try {
      user.doAs(new PrivilegedExceptionAction[A] { override def run(): A = body })
    } catch { case e: UndeclaredThrowableException => throw e.getCause }

  /** Tells the driver that the JVM serves it. The environment of Spark must be this application's. */
  def activate(attachment: Long): Unit = {
    LogLevel.use(level)
    backend.driver.get.send(Active(executorId, attachment))
  }

  /** The application wants another level of logs. */
  def logAt(name: String): Unit = {
    level = Some(name)
    if (SparkEnv.get eq environment) LogLevel.use(level)
  }

  /** How many tasks run. */
  def running: Int = Option(backend).map(_.running).getOrElse(0)

  /** Ends the tasks that run. */
  def kill(why: String): Unit = Option(backend).foreach(_.kill(why))

  /**
   * Drops cached data and other blocks from memory until they have at most so many bytes. What their storage level
   * keeps on disk goes there, if keep. It returns what is to be done later, because it waits for the driver.
   */
  def shrink(most: Long, keep: Boolean): Option[() => Unit] = Option(environment).flatMap { env =>
    val shrinking = new Shrinking(env.blockManager, env.memoryManager)
    val dropped = shrinking.shrink(most, keep)
    if (dropped.isEmpty) None else Some(() => shrinking.tell(dropped))
  }

  /**
   * Ends everything that the application has here: first its tasks, then its environment, without which a task ends
   * that waits for Python. It returns false if tasks do not end in some seconds: then the JVM is of no more use.
   */
  def detach(seconds: Long): Boolean = {
    Option(backend).foreach(_.stopping.set(true))
    kill("the executor is detached")
    await(Attached.KillMillis)
    Utils.tryLogNonFatalError {
      asUser {
        if (backend != null && backend.executor != null) backend.executor.stop()
        else if (environment != null) environment.stop()
      }
    }
    val ended = await(seconds * 1000)
    Utils.tryLogNonFatalError(FileSystem.closeAllForUGI(user))
    ended
  }

  /** Waits until no task runs, or for so many ms; false if tasks run still. */
  private def await(millis: Long): Boolean = new Patience().await(millis, 5)(running == 0)

  /** The application's driver, or its connection, has ended. */
  def gone(why: String): Unit = ends.gone(this, why)
}

private[bellows] object Attached {
  /** The connector's own jar. The JVM has it, and does not fetch it from drivers. */
  val Jar = "bellows-spark.jar"

  private val KillMillis = 200L

  private val InitialJars = "spark.app.initial.jar.urls"
}

/**
 * The class loader of tasks of all applications that have no jars of their own. Spark keeps the code that it generates
 * by class loader, so that an application finds what another one has compiled.
 */
private[bellows] final class SharedLoader(parent: ClassLoader) extends MutableURLClassLoader(Array.empty[URL], parent) {
  /** The executor whose tasks run, which leaves this loader when it gets a jar. */
  @volatile var user: Option[WarmBackend] = None

  override def addURL(url: URL): Unit = user.foreach(_.useOwnLoader(url))
}

/** The backend of Spark's executor, which never ends the JVM. */
private[bellows] final class WarmBackend(rpcEnv: RpcEnv, driverUrl: String, executorId: String, host: String,
    cores: Int, env: SparkEnv, application: Attached, shared: SharedLoader, handler: UncaughtExceptionHandler)
  extends CoarseGrainedExecutorBackend(rpcEnv, driverUrl, executorId, host, host, cores, env, None,
    ResourceProfile.getOrCreateDefaultProfile(env.conf)) {

  /** Done when the driver knows the executor, or when that has failed. */
  val launched = new CompletableFuture[Unit]

  def running: Int = Option(executor).map(_.numRunningTasks).getOrElse(0)

  def kill(why: String): Unit = Option(executor).foreach(_.killAllTasks(interruptThread = true, why))

  override def receive: PartialFunction[Any, Unit] = own.orElse(super.receive)

  private lazy val own: PartialFunction[Any, Unit] = {
    case RegisteredExecutor =>
      try {
        executor = new Executor(executorId, host, env, Nil, isLocal = false, uncaughtExceptionHandler = handler,
          resources = Map.empty)
        executor.defaultSessionState.currentJars(Attached.Jar) = Long.MaxValue
        bind()
        shareLoader()
        driver.get.send(LaunchedExecutor(executorId))
        launched.complete(())
      } catch {
        case e: Throwable => end(s"the executor could not be made: $e", e)
      }
    case StopExecutor | Shutdown => end("its driver has stopped the executor", null)
    // Spark 3.5 does not have it.
    case update: Product if update.productPrefix == "UpdateExecutorLogLevel" =>
      application.logAt(update.productElement(0).toString)
  }

  override def onDisconnected(remote: RpcAddress): Unit =
    if (driver.exists(_.address == remote)) end("its driver is gone", null)

  override protected def exitExecutor(code: Int, reason: String, throwable: Throwable, notifyDriver: Boolean): Unit =
    end(reason, throwable)

  /** Ends the application here, in another thread: this one is needed to end it. */
  private def end(why: String, cause: Throwable): Unit =
    if (stopping.compareAndSet(false, true)) {
      if (cause != null) logError(s"Executor $executorId of application ${application.name}: $why", cause)
      launched.completeExceptionally(new IllegalStateException(why, cause))
      application.gone(why)
    }

  /** Finds what Spark looks for in the current environment when it is first used: later that may be another one. */
  private def bind(): Unit = {
    Binding.resolver(env.blockManager) match {
      case Some(files: IndexShuffleBlockResolver) => files.getDataFile(0, 0L)
      case _ =>
    }
  }

  /** Lets tasks share the class loader with other applications, if this one has no classes of its own. */
  private def shareLoader(): Unit = {
    val state = executor.defaultSessionState
    if (state.urlClassLoader.getURLs.isEmpty && (state.replClassLoader eq state.urlClassLoader) &&
        state.urlClassLoader.getClass == classOf[MutableURLClassLoader]) {
      use(shared)
    }
  }

  /** A jar was added. */
  def useOwnLoader(url: URL): Unit = use(new MutableURLClassLoader(Array(url), shared.getParent))

  private def use(loader: MutableURLClassLoader): Unit = {
    val state = executor.defaultSessionState
    state.urlClassLoader = loader
    state.replClassLoader = loader
    env.serializer.setDefaultClassLoader(loader)
    env.serializerManager.setDefaultClassLoader(loader)
  }
}
