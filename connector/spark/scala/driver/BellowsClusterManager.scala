package org.apache.spark.scheduler.bellows

import java.util.UUID

import org.apache.hadoop.security.UserGroupInformation

import org.apache.spark.{SparkConf, SparkContext, SparkException}
import org.apache.spark.internal.Logging
import org.apache.spark.launcher.JavaModuleOptions
import org.apache.spark.scheduler.{ExternalClusterManager, SchedulerBackend, TaskScheduler, TaskSchedulerImpl}

/** Spark on the executors of a pool of bellows: --master spark-bellows://POOL. Spark finds it by its ServiceLoader. */
private[spark] final class BellowsClusterManager extends ExternalClusterManager {
  override def canCreate(masterURL: String): Boolean = masterURL.startsWith(BellowsClusterManager.Scheme)

  override def createTaskScheduler(sc: SparkContext, masterURL: String): TaskScheduler = {
    Settings.force(sc.conf)
    new BellowsTaskScheduler(sc)
  }

  override def createSchedulerBackend(sc: SparkContext, masterURL: String,
      scheduler: TaskScheduler): SchedulerBackend = {
    val pool = masterURL.stripPrefix(BellowsClusterManager.Scheme).stripSuffix("/")
    if (!pool.matches("[A-Za-z0-9][A-Za-z0-9._-]*")) {
      throw new SparkException(s"master $masterURL: must name a pool, as in ${BellowsClusterManager.Scheme}sp")
    }
    val enrolment = Enrolment(pool, UUID.randomUUID.toString + UUID.randomUUID, sc.appName,
      sc.conf.getDouble("spark.bellows.weight", 0), sc.conf.get("spark.bellows.queue", ""))
    new BellowsSchedulerBackend(scheduler.asInstanceOf[BellowsTaskScheduler], enrolment,
      Place.of(sc.conf.getOption, sys.env))
  }

  override def initialize(scheduler: TaskScheduler, backend: SchedulerBackend): Unit =
    scheduler.asInstanceOf[TaskSchedulerImpl].initialize(backend)
}

private[spark] object BellowsClusterManager {
  // spark-submit refuses schemes that do not begin with "spark".
  val Scheme = "spark-bellows://"
}

/** What bellows decides in place of the configuration of an application. */
private[spark] object Settings extends Logging {
  private val forced = Seq(
    ("spark.dynamicAllocation.enabled", "false", "bellows gives executors as stages demand them"),
    ("spark.decommission.enabled", "false", "executors stay warm for the next application"),
    ("spark.locality.wait", "0", "an executor that waits for tasks with data there is idle for others"))

  // An application can set these otherwise; then it has what it asked for.
  private val preferred = Seq(
    // All tasks share one class loader, so that code that was generated once is compiled once.
    "spark.sql.artifact.isolation.enabled" -> "false")

  private val sizes = Seq("spark.executor.cores", "spark.executor.memoryOverhead",
    "spark.executor.memoryOverheadFactor", "spark.executor.pyspark.memory", "spark.executor.instances",
    "spark.cores.max", "spark.executor.extraJavaOptions", "spark.executor.extraClassPath")

  /** Sets what is forced, with a line of log for each that was set otherwise, and refuses what cannot work. */
  def force(conf: SparkConf): Unit = {
    if (conf.get("spark.submit.deployMode", "client") != "client") {
      throw new SparkException("spark.submit.deployMode: must be client: the driver runs where you start it. " +
        "`bellows run -- spark-submit …` runs it in a container of bellows")
    }
    if (UserGroupInformation.isSecurityEnabled) {
      throw new SparkException("Kerberos: the executors of a pool get no delegation tokens: it is not supported")
    }
    conf.getAll.find { case (key, _) => key.startsWith("spark.executor.resource.") }.foreach { case (key, _) =>
      throw new SparkException(s"$key: the executors of a pool have cores and memory alone")
    }
    for ((key, value, why) <- forced) {
      if (conf.getOption(key).exists(_ != value)) {
        logWarning(s"$key is ${conf.get(key)} and becomes $value: $why")
      }
      conf.set(key, value)
    }
    if (!conf.getBoolean("spark.authenticate", false)) { // By now Spark listens: this cannot be forced.
      logWarning("spark.authenticate is not true: other users of this machine, who reach the ports of this " +
        "application, can read its settings and data; set it, and spark.authenticate.secret, where only you read them")
    }
    for ((key, value) <- preferred) conf.setIfMissing(key, value)
  }

  /** Refuses an application that cannot run on executors of a size, and says what it has set in vain. */
  def check(conf: SparkConf, pool: String, size: PoolSize): Unit = {
    val cpus = conf.getInt("spark.task.cpus", 1)
    if (cpus > size.cores) {
      throw new SparkException(s"spark.task.cpus: must be at most ${size.cores}, the cores of executors of pool " +
        s"$pool, not $cpus")
    }
    conf.getOption("spark.executor.memory").foreach { text =>
      val memory = conf.getSizeAsBytes("spark.executor.memory")
      if (memory > size.heap) {
        throw new SparkException(s"spark.executor.memory: must be at most ${size.heap >> 20}m, the heap of executors " +
          s"of pool $pool, not $text; `bellows pool create` with more --memory has a larger one")
      }
    }
    val isOwn = (key: String) => key == "spark.executor.extraJavaOptions" && // which Spark itself has set
      conf.get(key).replace(JavaModuleOptions.defaultModuleOptions(), "").trim.matches("(-Djava.net.prefer\\S*)?")
    val vain = (sizes :+ "spark.executor.memory").filter(key => conf.contains(key) && !isOwn(key))
    if (vain.nonEmpty) {
      logWarning(s"${vain.mkString(", ")}: without effect, because each executor of pool $pool has $size")
    }
  }
}
